//! What a run has made is taken over by Terraform under the ids that the provider's documentation gives.

use super::super::{Made, resources};
use super::{demo_plan, form, go_on};
use crate::plan::diff;
use crate::plan::model::{Plan, ResourceState};
use crate::world::cloud::Resource;
use serde_json::json;
use std::collections::BTreeMap;

const CALLER: &str = "arn:aws:iam::000000000000:role/ops";

/// As if a run had made everything.
fn made(plan: &Plan) -> Made {
    let cluster = &plan.target.cluster.name;
    let mut out = Made {
        caller: Some(CALLER.into()),
        resources: BTreeMap::new(),
    };
    for (r, _) in resources(plan) {
        let text = serde_json::to_string(&r)
            .expect("JSON")
            .replace("${caller}", CALLER)
            .replace("${account}", "000000000000")
            .replace(
                "${cluster.issuer}",
                "oidc.eks.eu-west-1.amazonaws.com/id/ABC",
            )
            .replace("${cluster.security_group}", "sg-0c1");
        out.resources.insert(
            diff::shown(&r.id(), cluster),
            serde_json::from_str(&text).expect("a resource"),
        );
    }
    out
}

#[test]
fn everything_that_a_run_has_made_has_an_import_block_and_a_plan_that_nobody_ran_has_none() {
    let plan = demo_plan();
    assert!(
        !go_on(&plan, &Made::default())
            .files
            .contains_key("imports.tf")
    );
    let rendering = go_on(&plan, &made(&plan));
    let imports = &rendering.files["imports.tf"];
    assert_eq!(form::wrong(imports), Vec::<String>::new());
    let green = &plan.target.cluster.name;
    for (to, id) in [
        (
            "module.cluster.aws_eks_cluster.green".to_string(),
            green.clone(),
        ),
        (
            format!("module.service_roles.aws_iam_role.role[\"{green}-node\"]"),
            format!("{green}-node"),
        ),
        (
            format!(
                "module.service_roles.aws_iam_role_policy_attachment.managed[\"{green}-node/arn:aws:iam::aws:policy/AmazonEKSWorkerNodePolicy\"]"
            ),
            format!("{green}-node/arn:aws:iam::aws:policy/AmazonEKSWorkerNodePolicy"),
        ),
        (
            "module.oidc.aws_iam_openid_connect_provider.green".into(),
            "arn:aws:iam::000000000000:oidc-provider/oidc.eks.eu-west-1.amazonaws.com/id/ABC"
                .into(),
        ),
        (
            format!("module.access.aws_eks_access_entry.entry[\"{CALLER}\"]"),
            format!("{green}:{CALLER}"),
        ),
        (
            format!("module.access.aws_eks_access_policy_association.policy[\"{CALLER}\"]"),
            format!(
                "{green}#{CALLER}#arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"
            ),
        ),
        (
            "module.addons_before_nodes.aws_eks_addon.addon[\"vpc-cni\"]".into(),
            format!("{green}:vpc-cni"),
        ),
        (
            "module.addons.aws_eks_addon.addon[\"coredns\"]".into(),
            format!("{green}:coredns"),
        ),
    ] {
        let block = format!("import {{\n  to = {to}\n  id = \"{id}\"\n}}\n");
        assert!(imports.contains(&block), "{block}\nis not in\n{imports}");
    }
    // EC2 alone knows the id of a launch template.
    let template = plan.target.node_groups[0].launch_template.name.clone();
    assert!(imports.contains(&format!(
        "  to = module.nodes.aws_launch_template.template[\"{template}\"]\n  id = data.aws_launch_template.made[\"{template}\"].id\n"
    )));
    // One block or one word for each resource, and none for what stays with crossfade.
    for r in &rendering.rendered {
        let id = diff::shown(&r.id(), green);
        let address = super::super::address(
            r,
            &super::super::Known {
                account: Some("000000000000".into()),
                caller: Some(CALLER.into()),
            },
        )
        .expect("an address");
        let told = imports.contains(&format!("to = {address}\n"))
            || rendering.todo.iter().any(|t| t.contains(&id));
        assert!(told, "{id}");
    }
    assert!(!imports.contains("trust"), "{imports}");
    assert!(rendering.files["terraform.tfvars"].contains(&format!("\"{CALLER}\"")));
}

#[test]
fn a_rule_for_all_ports_and_a_tag_are_imported_in_the_providers_spelling() {
    let known = super::super::Known::default();
    let rule = |protocol: &str, from_port: i32, to_port: i32| Resource::SecurityGroupRule {
        group: "sg-db".into(),
        protocol: protocol.into(),
        from_port,
        to_port,
        source_group: "sg-0c1".into(),
        description: "crossfade".into(),
    };
    let id = |r: &Resource| super::super::import_id(r, &known);
    assert_eq!(
        id(&rule("tcp", 5432, 5432)).as_deref(),
        Some("sg-db_ingress_tcp_5432_5432_sg-0c1")
    );
    assert_eq!(
        id(&rule("-1", -1, -1)).as_deref(),
        Some("sg-db_ingress_all_0_65536_sg-0c1")
    );
    let tag = Resource::Tag {
        resource: "subnet-1".into(),
        key: "kubernetes.io/cluster/g".into(),
        value: "shared".into(),
    };
    assert_eq!(
        id(&tag).as_deref(),
        Some("subnet-1,kubernetes.io/cluster/g")
    );
}

#[test]
fn what_others_keep_is_left_out_with_the_reason_and_green_that_stands_is_only_looked_up() {
    let mut plan = demo_plan();
    let green = plan.target.cluster.name.clone();
    let set = |plan: &mut Plan, id: &str, state: ResourceState, why: &str| {
        let r = plan.target.resources.iter_mut().find(|r| r.id == id);
        let r = r.unwrap_or_else(|| panic!("{id}"));
        (r.state, r.why) = (state, why.into());
    };
    set(
        &mut plan,
        &format!("cluster/{green}"),
        ResourceState::Adopt,
        "made by eksctl; used by consent, never deleted",
    );
    set(
        &mut plan,
        &format!("role/{green}-node"),
        ResourceState::Terraform,
        "module.x.aws_iam_role.n",
    );
    set(
        &mut plan,
        &format!("addon/{green}/coredns"),
        ResourceState::ExistsEqual,
        "made by run demo-1; kept",
    );
    let rendering = go_on(&plan, &Made::default());
    let main = &rendering.files["main.tf"];
    assert!(
        main.contains("data \"aws_eks_cluster\" \"green\""),
        "{main}"
    );
    assert!(
        !main.contains("module \"cluster\"") && !main.contains("module \"network\""),
        "{main}"
    );
    assert_eq!(form::wrong(main), Vec::<String>::new());
    let left: BTreeMap<_, _> = rendering.left.iter().cloned().collect();
    assert!(left[&format!("cluster/{green}")].contains("eksctl"));
    assert!(left[&format!("role/{green}-node")].contains("module.x.aws_iam_role.n"));
    // The node groups still name the role, by its ARN.
    assert!(
        main.contains(&format!("arn:aws:iam::${{var.account}}:role/{green}-node")),
        "{main}"
    );
    // A former run's add-on is ours: it is taken over.
    assert!(rendering.files["imports.tf"].contains(&format!("id = \"{green}:coredns\"")));
}

#[test]
fn user_data_stands_in_a_file_of_its_own_byte_by_byte() {
    let mut plan = demo_plan();
    let data = "#!/bin/sh\necho ${HOME} %{x} \"$1\"\r\n";
    let step = plan
        .steps
        .iter_mut()
        .find(|s| s.params["resource"]["type"] == "launch-template")
        .expect("a template");
    step.params["resource"]["userData"] = json!(data);
    let rendering = go_on(&plan, &Made::default());
    let (path, text) = rendering
        .files
        .iter()
        .find(|(p, _)| p.starts_with("user-data/"))
        .expect("a file");
    let all: Vec<&String> = rendering
        .files
        .iter()
        .filter(|(p, _)| p.starts_with("user-data/"))
        .map(|(_, t)| t)
        .collect();
    assert!(all.iter().any(|t| *t == data), "{path}: {text}");
    assert!(rendering.files["main.tf"].contains(&format!("file(\"${{path.module}}/{path}\")")));
}
