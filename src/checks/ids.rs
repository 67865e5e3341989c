//! Ids of findings: those of the catalogue, and of what other rooms say.

/// The ids of the catalogue (checks.md), family by family.
pub const CATALOGUE: &[&str] = &[
    "ID-01", "ID-02", "ID-03", "ID-04", "ID-05", "ID-06", "ID-07", "ID-08", "ID-09", "ID-10",
    "VER-01", "VER-02", "VER-03", "VER-04", "VER-05", "API-01", "API-02", "API-03", "API-04",
    "API-05", "API-06", "API-07", "API-08", "API-09", "API-10", "API-11", "API-12", "API-13",
    "WL-01", "WL-02", "WL-03", "WL-04", "WL-05", "WL-06", "WL-07", "WL-08", "WL-09", "WL-10",
    "WL-11", "CAP-01", "CAP-02", "CAP-03", "CAP-04", "CAP-05", "CAP-06", "CAP-07", "CAP-08",
    "CAP-09", "CAP-10", "CAP-11", "CAP-12", "CAP-13", "CAP-14", "NET-01", "NET-02", "NET-03",
    "NET-04", "NET-05", "NET-06", "NET-07", "NET-08", "NET-09", "NET-10", "NET-11", "NET-12",
    "DNS-01", "DNS-02", "DNS-03", "DNS-04", "DNS-05", "DNS-06", "DNS-07", "DNS-08", "DNS-09",
    "DNS-10", "DNS-11", "DNS-12", "DNS-13", "DNS-14", "DNS-15", "DNS-16", "DNS-17", "TLS-01",
    "TLS-02", "TLS-03", "TLS-04", "TLS-05", "TLS-06", "IAM-01", "IAM-02", "IAM-03", "IAM-04",
    "IAM-05", "IAM-06", "IAM-07", "IAM-08", "STO-01", "STO-02", "STO-03", "STO-04", "STO-05",
    "STO-06", "STO-07", "STO-08", "STO-09", "DAT-01", "DAT-02", "DAT-03", "DAT-04", "DAT-05",
    "DAT-06", "DAT-07", "OBS-01", "OBS-02", "OBS-03", "OBS-04", "OBS-05", "OBS-06", "OBS-07",
    "GIT-01", "GIT-02", "GIT-03", "GIT-04", "GIT-05", "SNG-01", "SNG-02", "SNG-03", "SNG-04",
    "SNG-05", "SNG-06", "SNG-07", "SNG-08",
];

/// First parts of ids that other rooms of the planner give: kops fields and instance groups, objects, times and so on. What comes after is theirs.
const OTHER_ROOMS: &[&str] = &[
    "KOPS", "OBJ", "TIME", "EKS", "READ", "WAIVER", "NG", "FIT", "HAZ", "COST", "ADOPT", "TF",
    "ADDON", "ACCESS", "TOOL",
];

/// Checks that nobody may waive, each with the reason: what they refuse would break a promise of the migration.
const NEVER_WAIVED: &[(&str, &str)] = &[
    (
        "ID-01",
        "it proves that a write goes to the cluster that the plan was made for",
    ),
    (
        "ID-02",
        "it proves that a write goes to the account and region that the plan was made for",
    ),
    (
        "DNS-01",
        "two sides whose records cannot be told apart would delete each other's",
    ),
    (
        "ID-03",
        "names that stay while writes move would split production in two",
    ),
    (
        "DAT-01",
        "the run proves that writes are closed before it copies; nothing else can stand for that",
    ),
];

/// Why this id may not be waived; `None` when it may.
pub fn never_waived(id: &str) -> Option<&'static str> {
    NEVER_WAIVED
        .iter()
        .find(|(x, _)| *x == id)
        .map(|(_, why)| *why)
}

/// Whether a finding may carry this id.
pub fn is_known(id: &str) -> bool {
    let family = id.split('-').next().unwrap_or("");
    CATALOGUE.contains(&id)
        || super::find(id).is_some()
        || id.len() > family.len() + 1 && OTHER_ROOMS.contains(&family)
}

/// Known ids of the same family, for the remedy of a mistyped one; the families when there is no such family.
pub fn nearest(id: &str) -> String {
    let upper = id.to_uppercase();
    let family = upper.split('-').next().unwrap_or("");
    let of_family: Vec<&str> = CATALOGUE
        .iter()
        .copied()
        .filter(|x| x.split('-').next() == Some(family))
        .collect();
    match (of_family.first(), of_family.last()) {
        (Some(first), Some(last)) => format!("ids of this family go from {first} to {last}"),
        _ => {
            let mut families: Vec<&str> = CATALOGUE
                .iter()
                .filter_map(|x| x.split('-').next())
                .collect();
            families.dedup();
            format!("families are {}", families.join(", "))
        }
    }
}
