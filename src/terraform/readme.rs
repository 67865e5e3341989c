//! What stands in a rendering for people.

use crate::plan::model::Plan;
use crate::world::cloud::Resource;
use std::fmt::Write;

/// The README of a rendering.
pub fn text(
    plan: &Plan,
    rendered: &[Resource],
    imports: usize,
    left: &[(String, String)],
    todo: &[String],
) -> String {
    let mut o = String::new();
    let t = &plan.target;
    let _ = writeln!(o, "# {} as Terraform\n", t.cluster.name);
    let _ = writeln!(
        o,
        "Rendered by `crossfade plan --render terraform` from plan {}: {} resources of green, {imports} import blocks for what exists already.\n",
        plan.digest.chars().take(12).collect::<String>(),
        rendered.len()
    );
    o.push_str(
        "    terraform init\n    terraform plan      # with import blocks: nothing to add for them, and read every change\n    terraform apply\n\n",
    );
    o.push_str(
        "Rendering again changes only files that nobody edited; `.crossfade-rendered.json` knows them. Your own files beside them are left alone.\n\n",
    );
    o.push_str(
        "Until `crossfade finalize` the run's undo deletes what it made: apply this only after it, or the two take turns.\n",
    );
    if !todo.is_empty() {
        o.push_str("\n## To fill in\n\n");
        for line in todo {
            let _ = writeln!(o, "- {line}");
        }
    }
    o.push_str("\n## Not in here\n\n");
    if left.is_empty() {
        o.push_str("Nothing: every AWS resource of the plan is here.\n");
    }
    for (id, why) in left {
        let _ = writeln!(o, "- `{id}`: {why}");
    }
    o.push_str(
        "\n## What was checked\n\nForm (`terraform fmt`), types and references of all inputs. Not `plan` and `apply` with the real AWS provider: read the first plan line by line.\n",
    );
    o
}
