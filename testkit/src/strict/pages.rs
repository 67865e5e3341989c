//! Pages of IAM's and EC2's lists: the emulator answers with everything at once, whatever it is asked for (eks.md 7).

use super::State;
use super::http::{Refusal, Reply, Req};
use super::upstream::text_of;
use super::xml::Element;

/// EC2: the list in the answer and the parameter that asks for single things, for which AWS makes no pages.
const EC2: &[(&str, &str, &str)] = &[
    ("DescribeSubnets", "subnetSet", "SubnetId"),
    ("DescribeVpcs", "vpcSet", "VpcId"),
    ("DescribeSecurityGroups", "securityGroupInfo", "GroupId"),
    (
        "DescribeSecurityGroupRules",
        "securityGroupRuleSet",
        "SecurityGroupRuleId",
    ),
    ("DescribeInstances", "reservationSet", "InstanceId"),
    (
        "DescribeNetworkInterfaces",
        "networkInterfaceSet",
        "NetworkInterfaceId",
    ),
    ("DescribeVolumes", "volumeSet", "VolumeId"),
    ("DescribeSnapshots", "snapshotSet", "SnapshotId"),
    ("DescribeTags", "tagSet", ""),
    ("DescribeRouteTables", "routeTableSet", "RouteTableId"),
    ("DescribeNatGateways", "natGatewaySet", "NatGatewayId"),
    (
        "DescribeInternetGateways",
        "internetGatewaySet",
        "InternetGatewayId",
    ),
    ("DescribeInstanceTypes", "instanceTypeSet", "InstanceType"),
    (
        "DescribeInstanceTypeOfferings",
        "instanceTypeOfferingSet",
        "",
    ),
];

/// IAM: the lists in the answer, in their order.
const IAM: &[(&str, &[&str])] = &[
    ("ListRoles", &["Roles"]),
    ("ListPolicies", &["Policies"]),
    ("ListPolicyVersions", &["Versions"]),
    ("ListAttachedRolePolicies", &["AttachedPolicies"]),
    ("ListRolePolicies", &["PolicyNames"]),
    ("ListRoleTags", &["Tags"]),
    ("ListInstanceProfiles", &["InstanceProfiles"]),
    ("ListInstanceProfilesForRole", &["InstanceProfiles"]),
    ("ListUsers", &["Users"]),
    (
        "GetAccountAuthorizationDetails",
        &[
            "UserDetailList",
            "GroupDetailList",
            "RoleDetailList",
            "Policies",
        ],
    ),
];

/// IAM's page when the caller says nothing.
const IAM_PAGE: usize = 100;
const EC2_PAGE: usize = 1_000;

/// The answer, or the page of it that was asked for.
pub(crate) async fn cut(state: &State, req: &Req, reply: Reply) -> Reply {
    if reply.status().as_u16() != 200 {
        return reply;
    }
    let most = state.lock_controls().page_size.unwrap_or(usize::MAX);
    let page = match req.service.as_str() {
        "ec2" => ec2(req, most),
        "iam" => iam(req, most),
        _ => return reply,
    };
    let page = match page {
        Ok(Some(page)) => page,
        Ok(None) => return reply,
        Err(refusal) => return refusal.reply(&req.service),
    };
    let (parts, body) = reply.into_parts();
    let (_, text) = text_of(Reply::new(body)).await;
    let text = page.of(&req.action, text);
    Reply::from_parts(parts, http_body_util::Full::new(text.into()))
}

/// Which part of which lists.
#[derive(Debug)]
struct Page {
    lists: Vec<&'static str>,
    start: usize,
    limit: usize,
    iam: bool,
}

fn offset(token: Option<&str>) -> Option<usize> {
    match token {
        None => Some(0),
        Some(token) => token.strip_prefix("next-")?.parse().ok(),
    }
}

fn ec2(req: &Req, most: usize) -> Result<Option<Page>, Refusal> {
    let Some((_, list, id)) = EC2.iter().find(|row| row.0 == req.action) else {
        return Ok(None);
    };
    let by_id = !id.is_empty() && req.form(&format!("{id}.1")).is_some();
    let asked = req.form("MaxResults");
    if by_id {
        return match asked {
            Some(_) => Err(Refusal::new(
                400,
                "InvalidParameterCombination",
                format!("The parameters {id}s and MaxResults cannot be used together"),
            )),
            None => Ok(None),
        };
    }
    let limit = match asked {
        None => EC2_PAGE,
        Some(text) => text
            .parse::<usize>()
            .ok()
            .filter(|n| (5..=1_000).contains(n))
            .ok_or_else(|| {
                Refusal::new(
                    400,
                    "InvalidParameterValue",
                    format!(
                        "Value ( {text} ) for parameter maxResults is invalid. Expecting a value between 5 and 1000."
                    ),
                )
            })?,
    };
    let start = offset(req.form("NextToken"))
        .ok_or_else(|| Refusal::new(400, "InvalidNextToken", "The token is not valid"))?;
    Ok(Some(Page {
        lists: vec![list],
        start,
        limit: limit.min(most),
        iam: false,
    }))
}

fn iam(req: &Req, most: usize) -> Result<Option<Page>, Refusal> {
    let Some((_, lists)) = IAM.iter().find(|row| row.0 == req.action) else {
        return Ok(None);
    };
    let wrong = |what: &str, value: &str| {
        Refusal::new(
            400,
            "ValidationError",
            format!(
                "1 validation error detected: Value '{value}' at '{what}' failed to satisfy constraint"
            ),
        )
    };
    let limit = match req.form("MaxItems") {
        None => IAM_PAGE,
        Some(text) => text
            .parse::<usize>()
            .ok()
            .filter(|n| (1..=1_000).contains(n))
            .ok_or_else(|| wrong("maxItems", text))?,
    };
    let marker = req.form("Marker");
    let start = offset(marker).ok_or_else(|| wrong("marker", marker.unwrap_or("")))?;
    Ok(Some(Page {
        lists: lists.to_vec(),
        start,
        limit: limit.min(most),
        iam: true,
    }))
}

impl Page {
    fn of(&self, action: &str, mut text: String) -> String {
        let Ok(root) = Element::parse(&text) else {
            return text;
        };
        let mut at = 0;
        for list in &self.lists {
            let Some(items) = root.find(list).map(|l| &l.children) else {
                continue;
            };
            let mut kept = String::new();
            for item in items {
                if (self.start..self.start + self.limit).contains(&at) {
                    item.write(&mut kept);
                }
                at += 1;
            }
            let (open, close) = (format!("<{list}>"), format!("</{list}>"));
            if let (Some(from), Some(to)) = (text.find(&open), text.rfind(&close)) {
                text.replace_range(from + open.len()..to, &kept);
            }
        }
        let next = self.start + self.limit;
        if next >= at {
            return text;
        }
        if self.iam {
            let said = format!("<IsTruncated>true</IsTruncated><Marker>next-{next}</Marker>");
            if text.contains("<IsTruncated>false</IsTruncated>") {
                return text.replacen("<IsTruncated>false</IsTruncated>", &said, 1);
            }
            let end = format!("</{action}Result>");
            return text.replacen(&end, &format!("{said}{end}"), 1);
        }
        let end = format!("</{action}Response>");
        text.replacen(&end, &format!("<nextToken>next-{next}</nextToken>{end}"), 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROLES: &str = "<ListRolesResponse xmlns=\"urn:x\"><ListRolesResult><Roles><member><RoleName>a</RoleName><Roles>inner</Roles></member><member><RoleName>b</RoleName></member><member><RoleName>c</RoleName></member></Roles><IsTruncated>false</IsTruncated></ListRolesResult></ListRolesResponse>";

    fn page(start: usize, limit: usize) -> String {
        let page = Page {
            lists: vec!["Roles"],
            start,
            limit,
            iam: true,
        };
        page.of("ListRoles", ROLES.to_owned())
    }

    #[test]
    fn the_pages_of_a_list_are_the_list() {
        let first = page(0, 2);
        assert!(first.contains("<RoleName>a</RoleName><Roles>inner</Roles>"));
        assert!(
            first.contains("<RoleName>b</RoleName>") && !first.contains("<RoleName>c</RoleName>")
        );
        assert!(first.contains("<IsTruncated>true</IsTruncated><Marker>next-2</Marker>"));
        assert!(
            first.contains("xmlns=\"urn:x\""),
            "the envelope stays as it was"
        );
        let last = page(2, 2);
        assert!(
            last.contains("<RoleName>c</RoleName>") && !last.contains("<RoleName>a</RoleName>")
        );
        assert!(last.contains("<IsTruncated>false</IsTruncated>") && !last.contains("Marker"));
        assert_eq!(page(0, 3), ROLES);
    }
}
