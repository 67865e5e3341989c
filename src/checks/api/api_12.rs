//! API-12: records of Helm releases (replay.md 69). What a record's labels say, the rewrite tells (src/rewrite/helm.rs); here its manifest is held against what
//! comes to green: would the next upgrade find what it looks for?

use crate::checks::{Answered, BlueObject, Check, Input, Report, few};
use crate::helm::Release;
use crate::object::annotation;
use crate::plan::model::Severity;
use crate::rewrite::helm::{Place, gone};
use std::collections::{BTreeMap, BTreeSet};

pub(super) const CHECK: Check = Check {
    id: "API-12",
    severity: Severity::Blocker,
    question: "Does the record of a Helm release stand in the way of its next upgrade?",
    needs: &[],
    answered: Answered::Plan,
    remedy: "Finish the release on blue, or map its record.",
    source: "checks.md API-12",
    run,
};

type ByName<'a> = BTreeMap<(&'a str, &'a str, &'a str), &'a BlueObject<'a>>;

fn run(i: &Input, r: &mut Report) {
    let releases = &i.snapshot.blue.helm;
    let names: BTreeSet<(&str, &str)> = releases
        .iter()
        .flat_map(|x| &x.objects)
        .map(|o| (o.kind.as_str(), o.name.as_str()))
        .collect();
    let by_name: ByName = i
        .blue
        .iter()
        .filter(|o| names.contains(&(o.id.kind.as_str(), o.id.name.as_str())))
        .map(|o| {
            let ns = o.id.namespace.as_deref().unwrap_or("");
            ((o.id.kind.as_str(), ns, o.id.name.as_str()), o)
        })
        .collect();
    let mut read = BTreeSet::new();
    for release in releases {
        read.insert(release.object.as_str());
        let Some(place) = i.cx.releases.get(&release.object) else {
            continue;
        };
        if !matches!(place, Place::Latest | Place::History) {
            continue;
        }
        if let Some(why) = &release.unreadable {
            r.blocker(
                &release.object,
                format!(
                    "the record of release {} is unreadable: {why}",
                    release.name
                ),
                "Mend or delete the record on blue: Helm cannot read it either.",
            );
            continue;
        }
        if *place == Place::Latest {
            latest(i, r, release, &by_name);
        }
    }
    // A snapshot of before, or Secrets that were masked before they came here.
    let unread: Vec<&str> =
        i.cx.releases
            .iter()
            .filter(|(id, place)| **place == Place::Latest && !read.contains(id.as_str()))
            .map(|(id, _)| id.as_str())
            .collect();
    if let Some(first) = unread.first() {
        r.warning(
            *first,
            format!(
                "what {} of Helm name was not read: whether an upgrade would find its objects is not known",
                crate::checks::look::count(unread.len(), "record")
            ),
            "Run discover against blue itself; the run rewrites removed APIs in the records all the same.",
        );
    }
}

fn latest(i: &Input, r: &mut Report, release: &Release, by_name: &ByName) {
    let old = gone(release, i.cx.green_minor);
    if !old.is_empty() {
        r.warning(
            &release.object,
            format!(
                "release {} names {}; its record is rewritten on the way, but chart {} {} makes the old ones again",
                release.name,
                few(&old),
                release.chart,
                release.chart_version
            ),
            "Before the next upgrade take a release of the chart that makes the successors.",
        );
    }
    let mut absent = vec![];
    let mut unmarked = vec![];
    for id in &release.objects {
        let ns = id.namespace.as_deref().unwrap_or(&release.namespace);
        let found = [ns, ""]
            .iter()
            .find_map(|ns| by_name.get(&(id.kind.as_str(), *ns, id.name.as_str())));
        // What is gone from blue too is no difference.
        let Some(o) = found else { continue };
        let same = o
            .on_green()
            .filter(|t| t["kind"] == id.kind.as_str() && t["metadata"]["name"] == id.name.as_str());
        match same {
            None => absent.push(o.name.as_str()),
            Some(t) => {
                let key = "meta.helm.sh/release-name";
                if annotation(o.object, key).is_some() && annotation(t, key).is_none() {
                    unmarked.push(o.name.as_str());
                }
            }
        }
    }
    if !absent.is_empty() {
        r.warning(
            &release.object,
            format!(
                "the next upgrade of release {} would make on green what the plan leaves out: {}",
                release.name,
                few(&absent)
            ),
            "Switch these parts off in the values of the chart before the next upgrade.",
        );
    }
    if !unmarked.is_empty() {
        r.blocker(
            &release.object,
            format!(
                "objects of release {} lose Helm's marks, and an upgrade would not take them for its own: {}",
                release.name,
                few(&unmarked)
            ),
            "Keep the annotations meta.helm.sh/release-name and release-namespace.",
        );
    }
}
