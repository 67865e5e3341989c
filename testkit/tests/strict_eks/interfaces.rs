//! EKS's interfaces in EC2: who carries them cannot be deleted, and they stay a while after their owner (eks.md 1.2, 2.3).

use std::time::Duration;

use aws_sdk_ec2::types::{Filter, NetworkInterface, NetworkInterfaceStatus};
use aws_sdk_eks::types::{NodegroupStatus, VpcConfigRequest};

use crate::strict_bench::{ec2, eventually};
use crate::world::{World, code, world};

impl World {
    async fn interfaces(&self, filter: &str, value: &str) -> Vec<NetworkInterface> {
        let found = ec2(&self.layer.strict)
            .describe_network_interfaces()
            .filters(Filter::builder().name(filter).values(value).build())
            .send()
            .await;
        found.expect("interfaces").network_interfaces().to_vec()
    }
}

#[tokio::test]
async fn a_security_group_stays_as_long_as_an_interface_carries_it() {
    let world = world().await;
    let strict = &world.layer.strict;
    let ec2 = ec2(strict);
    let extra = ec2
        .create_security_group()
        .group_name("extra")
        .description("extra")
        .vpc_id(world.vpc().await)
        .send()
        .await
        .expect("group")
        .group_id
        .expect("id");
    let delete = || ec2.delete_security_group().group_id(&extra).send();
    world
        .creation("green")
        .resources_vpc_config(
            VpcConfigRequest::builder()
                .subnet_ids(&world.subnets[0])
                .subnet_ids(&world.subnets[1])
                .security_group_ids(&extra)
                .build(),
        )
        .send()
        .await
        .expect("cluster");
    world.active("green").await;
    // Two to four of them, in different zones (eks.md 1.2).
    let found = world.interfaces("group-id", &extra).await;
    assert_eq!(found.len(), 2);
    assert_ne!(found[0].availability_zone(), found[1].availability_zone());
    for interface in &found {
        assert_eq!(interface.description(), Some("Amazon EKS green"));
        assert_eq!(interface.requester_managed(), Some(true));
        assert_eq!(interface.status(), Some(&NetworkInterfaceStatus::InUse));
    }
    let (kind, message) = code(delete().await);
    assert_eq!(kind, "DependencyViolation");
    assert!(message.contains("has a dependent object"), "{message}");
    let subnet = ec2.delete_subnet().subnet_id(&world.subnets[0]);
    assert_eq!(code(subnet.send().await).0, "DependencyViolation");
    let cluster_group = found[0]
        .groups()
        .iter()
        .filter_map(|g| g.group_id())
        .find(|g| *g != extra)
        .expect("the cluster's own")
        .to_owned();
    strict.eni_linger(Duration::from_millis(1_500));
    world
        .api
        .delete_cluster()
        .name("green")
        .send()
        .await
        .expect("delete");
    eventually("cluster gone", || async {
        world.status("green").await.is_none().then_some(())
    })
    .await;
    let lingering = world.interfaces("group-id", &extra).await;
    assert_eq!(lingering.len(), 2, "its interfaces are still there");
    assert_eq!(
        lingering[0].status(),
        Some(&NetworkInterfaceStatus::Available)
    );
    assert_eq!(code(delete().await).0, "DependencyViolation");
    assert_eq!(
        world.interfaces("group-id", &cluster_group).await.len(),
        2,
        "EKS's own group waits for them too"
    );
    eventually("interfaces gone", || async {
        world
            .interfaces("group-id", &extra)
            .await
            .is_empty()
            .then_some(())
    })
    .await;
    delete().await.expect("nothing carries it any more");
    let own = ec2.describe_security_groups().group_ids(&cluster_group);
    assert_eq!(code(own.send().await).0, "InvalidGroup.NotFound");
}

#[tokio::test]
async fn every_node_has_an_interface_that_takes_an_address_of_its_subnet() {
    let world = world().await;
    let ec2 = ec2(&world.layer.strict);
    world.cluster("green").await;
    world.addon("vpc-cni").await;
    let free = || async {
        let found = ec2
            .describe_subnets()
            .subnet_ids(&world.subnets[0])
            .send()
            .await
            .expect("subnet");
        found.subnets()[0].available_ip_address_count()
    };
    // 256 less five of AWS and one of the control plane (eks.md 2.2).
    assert_eq!(free().await, Some(250));
    world.group("main").send().await.expect("group");
    eventually("group ACTIVE", || async {
        (world.group_status("main").await == Some(NodegroupStatus::Active)).then_some(())
    })
    .await;
    let nodes = world.interfaces("description", "aws-K8S-*").await;
    assert_eq!(nodes.len(), 2);
    assert!(nodes.iter().all(|n| {
        n.attachment().and_then(|a| a.instance_id()).is_some()
            && n.subnet_id() == Some(world.subnets[0].as_str())
    }));
    assert_eq!(free().await, Some(248));
    world
        .api
        .delete_nodegroup()
        .cluster_name("green")
        .nodegroup_name("main")
        .send()
        .await
        .expect("delete");
    assert_eq!(
        world.interfaces("description", "aws-K8S-*").await.len(),
        2,
        "while they are drained"
    );
    eventually("group gone", || async {
        world.group_status("main").await.is_none().then_some(())
    })
    .await;
    assert_eq!(free().await, Some(250));
    // A filter that the layer does not know is refused; the emulator ignores all of them.
    let unknown = ec2
        .describe_network_interfaces()
        .filters(Filter::builder().name("mac-address").values("x").build());
    assert_eq!(code(unknown.send().await).0, "InvalidParameterValue");
}
