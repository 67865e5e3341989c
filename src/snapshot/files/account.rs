//! The optional parts of the inventory out of AWS CLI output: what is not given stays `None`, which is "not read", never "none".

use super::aws::{list, policy, tags, text};
use super::not;
use crate::snapshot::model::NotChecked;
use crate::world::cloud::{
    AutoScalingGroup, InstanceType, Inventory, LoadBalancer, NatGateway, Quota, RouteTable, Volume,
};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// One thing and the VPC that it is in, when the output says it.
type In<T> = (T, Option<String>);

/// A NAT gateway with the ids of its address allocations, whose addresses may stand in another listing.
type Allocated = (NatGateway, Vec<String>);

#[derive(Default)]
pub(super) struct Account {
    policies: Option<BTreeMap<String, Value>>,
    profiles: Option<BTreeMap<String, String>>,
    nat: Option<Vec<In<Allocated>>>,
    addresses: BTreeMap<String, String>,
    routes: Option<Vec<In<RouteTable>>>,
    volumes: Option<Vec<Volume>>,
    groups: Option<Vec<AutoScalingGroup>>,
    balancers: Option<Vec<In<LoadBalancer>>>,
    /// Tags that came apart from their load balancer, by ARN or name.
    loose_tags: BTreeMap<String, BTreeMap<String, String>>,
    arns: BTreeMap<String, String>,
    types: Option<BTreeMap<String, InstanceType>>,
    offerings: Option<BTreeMap<String, Vec<String>>>,
    quotas: Option<BTreeMap<String, Quota>>,
}

fn number(v: &Value) -> u32 {
    v.as_u64()
        .and_then(|n| u32::try_from(n).ok())
        .unwrap_or_default()
}

fn some(v: &Value, key: &str) -> Option<String> {
    Some(text(v, key)).filter(|t| !t.is_empty())
}

impl Account {
    /// Whether the document held one of these parts.
    pub fn take(&mut self, doc: &Value) -> bool {
        let has = |key: &str| doc.get(key).is_some_and(Value::is_array);
        let mut taken = true;
        if has("NatGateways") {
            let all = self.nat.get_or_insert_default();
            for n in list(doc, "NatGateways") {
                if !matches!(text(n, "State").as_str(), "deleted" | "deleting" | "failed") {
                    all.push((nat(n), some(n, "VpcId")));
                }
            }
        } else if has("Addresses") {
            for a in list(doc, "Addresses") {
                self.addresses
                    .insert(text(a, "AllocationId"), text(a, "PublicIp"));
            }
        } else if has("RouteTables") {
            let all = self.routes.get_or_insert_default();
            all.extend(list(doc, "RouteTables").map(|t| (table(t), some(t, "VpcId"))));
        } else if has("Volumes") {
            let all = self.volumes.get_or_insert_default();
            all.extend(list(doc, "Volumes").map(volume));
        } else if has("AutoScalingGroups") {
            let all = self.groups.get_or_insert_default();
            all.extend(list(doc, "AutoScalingGroups").map(scaling));
        } else if has("LoadBalancerDescriptions") {
            let all = self.balancers.get_or_insert_default();
            all.extend(list(doc, "LoadBalancerDescriptions").map(|b| {
                let mut it = balancer(b);
                it.kind = "classic".into();
                // The classic API spells it otherwise.
                (it, some(b, "VPCId"))
            }));
        } else if has("LoadBalancers") {
            let all = self.balancers.get_or_insert_default();
            for b in list(doc, "LoadBalancers") {
                self.arns
                    .insert(text(b, "LoadBalancerName"), text(b, "LoadBalancerArn"));
                all.push((balancer(b), some(b, "VpcId")));
            }
        } else if has("TagDescriptions") {
            for t in list(doc, "TagDescriptions") {
                let whose = some(t, "ResourceArn").unwrap_or_else(|| text(t, "LoadBalancerName"));
                self.loose_tags.entry(whose).or_default().extend(tags(t));
            }
        } else if has("InstanceTypes") {
            let all = self.types.get_or_insert_default();
            all.extend(list(doc, "InstanceTypes").map(|t| (text(t, "InstanceType"), kind(t))));
        } else if has("InstanceTypeOfferings") {
            let all = self.offerings.get_or_insert_default();
            for o in list(doc, "InstanceTypeOfferings") {
                // A listing by region says nothing about zones.
                if text(o, "LocationType") == "availability-zone" {
                    all.entry(text(o, "InstanceType"))
                        .or_default()
                        .push(text(o, "Location"));
                }
            }
        } else if has("Quotas") {
            let all = self.quotas.get_or_insert_default();
            all.extend(list(doc, "Quotas").map(quota));
        } else if doc["Quota"].is_object() {
            self.quotas
                .get_or_insert_default()
                .extend([quota(&doc["Quota"])]);
        } else if has("InstanceProfiles") {
            list(doc, "InstanceProfiles").for_each(|p| self.profile(p));
            self.profiles.get_or_insert_default();
        } else if doc["InstanceProfile"].is_object() {
            self.profile(&doc["InstanceProfile"]);
        } else {
            taken = false;
        }
        // `get-account-authorization-details` holds roles, policies and profiles in one document.
        if has("RoleDetailList") {
            for r in list(doc, "RoleDetailList") {
                list(r, "InstanceProfileList").for_each(|p| self.profile(p));
            }
            self.profiles.get_or_insert_default();
        }
        let documents =
            has("Policies") && list(doc, "Policies").all(|p| p.get("PolicyVersionList").is_some());
        if documents && (has("RoleDetailList") || !taken) {
            let all = self.policies.get_or_insert_default();
            for p in list(doc, "Policies") {
                let current = list(p, "PolicyVersionList")
                    .find(|v| v["IsDefaultVersion"] == true)
                    .map(|v| policy(&v["Document"]));
                if let Some(document) = current {
                    all.insert(text(p, "Arn"), document);
                }
            }
            taken = true;
        }
        taken
    }

    fn profile(&mut self, p: &Value) {
        // A profile holds one role at most.
        if let Some(role) = list(p, "Roles").next() {
            self.profiles
                .get_or_insert_default()
                .insert(text(p, "Arn"), text(role, "RoleName"));
        }
    }

    /// Puts the parts into the inventory: those of the VPC, those of the cluster, sorted. `named` are volume ids that objects of
    /// blue name.
    pub fn fill(
        self,
        to: &mut Inventory,
        cluster: Option<&str>,
        named: &BTreeSet<String>,
        missing: &mut Vec<NotChecked>,
    ) {
        let vpc = to.vpc.as_ref().map(|v| v.id.clone());
        let here = |id: &Option<String>| match (&vpc, id) {
            (Some(vpc), Some(id)) => vpc == id,
            _ => true,
        };
        let ours = |tags: &BTreeMap<String, String>| {
            cluster.is_none_or(|c| {
                tags.get("KubernetesCluster").is_some_and(|v| v == c)
                    || tags.contains_key(&format!("kubernetes.io/cluster/{c}"))
            })
        };
        to.policies = self.policies;
        to.instance_profiles = self.profiles;
        let addresses = self.addresses;
        to.nat_gateways = self.nat.map(|all| {
            let mut out: Vec<NatGateway> = all
                .into_iter()
                .filter(|(_, v)| here(v))
                .map(|((mut n, allocations), _)| {
                    if n.public_ips.is_empty() {
                        n.public_ips = allocations
                            .iter()
                            .filter_map(|a| addresses.get(a).cloned())
                            .collect();
                    }
                    n
                })
                .collect();
            out.sort_by(|a, b| a.id.cmp(&b.id));
            out.dedup();
            out
        });
        to.route_tables = self.routes.map(|all| {
            let mut out: Vec<RouteTable> = all
                .into_iter()
                .filter(|(_, v)| here(v))
                .map(|(t, _)| t)
                .collect();
            out.sort_by(|a, b| a.id.cmp(&b.id));
            out.dedup();
            out
        });
        to.volumes = self.volumes.map(|mut all| {
            all.retain(|v| ours(&v.tags) || named.contains(&v.id));
            all.sort_by(|a, b| a.id.cmp(&b.id));
            all.dedup();
            all
        });
        to.auto_scaling_groups = self.groups.map(|mut all| {
            // Very old groups carry no tag of the cluster; their name ends with it (kops.md 4.2).
            all.retain(|g| {
                ours(&g.tags) || cluster.is_some_and(|c| g.name.ends_with(&format!(".{c}")))
            });
            all.sort_by(|a, b| a.name.cmp(&b.name));
            all.dedup();
            all
        });
        let (loose, arns) = (self.loose_tags, self.arns);
        to.load_balancers = self.balancers.map(|all| {
            let mut out: Vec<LoadBalancer> = all
                .into_iter()
                .filter(|(_, v)| here(v))
                .map(|(mut b, _)| {
                    let whose = arns.get(&b.name).unwrap_or(&b.name);
                    if let Some(tags) = loose.get(whose) {
                        b.tags.extend(tags.clone());
                    }
                    b
                })
                .collect();
            out.sort_by(|a, b| (&a.name, &a.kind).cmp(&(&b.name, &b.kind)));
            out.dedup();
            out
        });
        to.instance_types = self.types;
        to.offerings = self.offerings.map(|mut all| {
            for zones in all.values_mut() {
                zones.sort();
                zones.dedup();
            }
            all
        });
        to.quotas = self.quotas;
        for (part, absent, command) in [
            (
                "policies",
                to.policies.is_none(),
                "aws iam get-account-authorization-details",
            ),
            (
                "instance-profiles",
                to.instance_profiles.is_none(),
                "aws iam list-instance-profiles",
            ),
            (
                "nat-gateways",
                to.nat_gateways.is_none(),
                "aws ec2 describe-nat-gateways",
            ),
            (
                "route-tables",
                to.route_tables.is_none(),
                "aws ec2 describe-route-tables",
            ),
            ("volumes", to.volumes.is_none(), "aws ec2 describe-volumes"),
            (
                "auto-scaling-groups",
                to.auto_scaling_groups.is_none(),
                "aws autoscaling describe-auto-scaling-groups",
            ),
            (
                "load-balancers",
                to.load_balancers.is_none(),
                "aws elb describe-load-balancers` and `aws elbv2 describe-load-balancers",
            ),
            (
                "instance-types",
                to.instance_types.is_none(),
                "aws ec2 describe-instance-types",
            ),
            (
                "offerings",
                to.offerings.is_none(),
                "aws ec2 describe-instance-type-offerings --location-type availability-zone",
            ),
            (
                "quotas",
                to.quotas.is_none(),
                "aws service-quotas list-service-quotas",
            ),
        ] {
            if absent {
                missing.push(not(
                    &format!("aws.{part}"),
                    format!("`{command}` was not given"),
                ));
            }
        }
    }
}

fn nat(n: &Value) -> (NatGateway, Vec<String>) {
    let addresses = || list(n, "NatGatewayAddresses");
    let mut public_ips: Vec<String> = addresses().filter_map(|a| some(a, "PublicIp")).collect();
    public_ips.sort();
    (
        NatGateway {
            id: text(n, "NatGatewayId"),
            subnet: text(n, "SubnetId"),
            public_ips,
            tags: tags(n),
        },
        addresses()
            .filter_map(|a| some(a, "AllocationId"))
            .collect(),
    )
}

fn table(t: &Value) -> RouteTable {
    let mut subnets: Vec<String> = list(t, "Associations")
        .filter_map(|a| some(a, "SubnetId"))
        .collect();
    subnets.sort();
    let mut routes = BTreeMap::new();
    for r in list(t, "Routes") {
        let to = [
            "DestinationCidrBlock",
            "DestinationIpv6CidrBlock",
            "DestinationPrefixListId",
        ]
        .iter()
        .find_map(|k| some(r, k));
        let by = [
            "GatewayId",
            "NatGatewayId",
            "TransitGatewayId",
            "VpcPeeringConnectionId",
            "EgressOnlyInternetGatewayId",
            "LocalGatewayId",
            "CarrierGatewayId",
            "CoreNetworkArn",
            // A route to an instance names its interface too.
            "NetworkInterfaceId",
            "InstanceId",
        ]
        .iter()
        .find_map(|k| some(r, k));
        if let (Some(to), Some(by)) = (to, by) {
            routes.insert(to, by);
        }
    }
    RouteTable {
        id: text(t, "RouteTableId"),
        main: list(t, "Associations").any(|a| a["Main"] == true),
        subnets,
        routes,
        tags: tags(t),
    }
}

fn volume(v: &Value) -> Volume {
    Volume {
        id: text(v, "VolumeId"),
        zone: text(v, "AvailabilityZone"),
        size_gib: number(&v["Size"]),
        kind: text(v, "VolumeType"),
        encrypted: v["Encrypted"] == true,
        kms_key: some(v, "KmsKeyId"),
        attached_to: list(v, "Attachments").find_map(|a| some(a, "InstanceId")),
        tags: tags(v),
    }
}

fn scaling(g: &Value) -> AutoScalingGroup {
    let mut subnets: Vec<String> = text(g, "VPCZoneIdentifier")
        .split(',')
        .map(|s| s.trim().to_string())
        .filter(|s| !s.is_empty())
        .collect();
    subnets.sort();
    AutoScalingGroup {
        name: text(g, "AutoScalingGroupName"),
        min: number(&g["MinSize"]),
        max: number(&g["MaxSize"]),
        desired: number(&g["DesiredCapacity"]),
        instances: u32::try_from(list(g, "Instances").count()).unwrap_or(u32::MAX),
        subnets,
        tags: tags(g),
    }
}

fn balancer(b: &Value) -> LoadBalancer {
    let mut security_groups: Vec<String> = list(b, "SecurityGroups")
        .filter_map(|g| g.as_str().map(String::from))
        .collect();
    security_groups.sort();
    LoadBalancer {
        name: text(b, "LoadBalancerName"),
        kind: text(b, "Type"),
        scheme: text(b, "Scheme"),
        dns_name: text(b, "DNSName"),
        security_groups,
        tags: tags(b),
    }
}

fn kind(t: &Value) -> InstanceType {
    let network = &t["NetworkInfo"];
    let default = number(&network["DefaultNetworkCardIndex"]);
    // The address formula counts the interfaces of the default card only (eks.md 2).
    let card = list(network, "NetworkCards").find(|c| number(&c["NetworkCardIndex"]) == default);
    let interfaces = card
        .map(|c| number(&c["MaximumNetworkInterfaces"]))
        .filter(|n| *n > 0)
        .unwrap_or_else(|| number(&network["MaximumNetworkInterfaces"]));
    let archs: Vec<&str> = t["ProcessorInfo"]["SupportedArchitectures"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    InstanceType {
        vcpus: number(&t["VCpuInfo"]["DefaultVCpus"]),
        memory_mib: number(&t["MemoryInfo"]["SizeInMiB"]),
        interfaces,
        addresses: number(&network["Ipv4AddressesPerInterface"]),
        // Old types also list i386.
        arch: archs
            .iter()
            .find(|a| ["x86_64", "arm64"].contains(a))
            .or(archs.first())
            .map(|a| a.to_string())
            .unwrap_or_default(),
        gpus: list(&t["GpuInfo"], "Gpus")
            .map(|g| number(&g["Count"]))
            .sum(),
        // Bare metal has no hypervisor, and is built on Nitro.
        nitro: t["Hypervisor"] == "nitro" || t["BareMetal"] == true,
        instance_store_gb: number(&t["InstanceStorageInfo"]["TotalSizeInGB"]),
    }
}

fn quota(q: &Value) -> (String, Quota) {
    (
        format!("{}/{}", text(q, "ServiceCode"), text(q, "QuotaCode")),
        Quota {
            name: text(q, "QuotaName"),
            value: q["Value"].as_f64().unwrap_or_default(),
            used: None,
        },
    )
}
