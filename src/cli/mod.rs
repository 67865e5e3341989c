//! The command line: one file per verb over a shared tree of arguments. The library below never prints; a [`printer::Printer`] does.

mod approvals;
pub mod args;
mod checks;
mod cost;
pub mod discover;
mod explain;
mod finalize;
mod findings;
mod folder;
mod groups;
mod hazards;
pub mod init;
mod migrate;
mod network;
mod plan;
mod policy;
mod printer;
mod progress;
mod rehearse;
mod replay;
mod review;
mod rollback;
mod rooms;
pub mod schema;
mod shell;
mod status;
mod terraform;

use crate::error::{Error, Kind, Result};
use args::{Cli, Command, Format};
use clap::{CommandFactory, Parser};
use printer::Printer;
use std::process::ExitCode;

/// Exit codes beside those of errors (see [`Kind::exit_code`]).
pub mod exit {
    /// Done, or nothing to do.
    pub const DONE: u8 = 0;
    /// `plan`: there is something to do.
    pub const CHANGES: u8 = 2;
    /// `plan`: findings stand in the way.
    pub const BLOCKED: u8 = 3;
}

/// Runs the program.
pub fn main() -> ExitCode {
    // Format and panics first: both must work when nothing else does.
    let wants_json = wants_json(std::env::args());
    let printer = Printer::new(if wants_json {
        Format::Json
    } else {
        Format::Text
    });
    std::panic::set_hook(Box::new(move |info| {
        let what = info
            .payload()
            .downcast_ref::<&str>()
            .map(|s| s.to_string())
            .or_else(|| info.payload().downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "panic".into());
        let at = info.location().map_or(String::new(), |l| l.to_string());
        printer.error(
            &Error::new(Kind::Bug, format!("crossfade itself is wrong: {what}"))
                .at(at)
                .remedy("the journal is whole: `crossfade status` shows where the run is. Please report this"),
        );
    }));
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(e) => return usage(&printer, &e),
    };
    let printer = Printer::new(cli.global.output);
    let code = std::panic::catch_unwind(|| match run(cli, &printer) {
        Ok(code) => code,
        Err(e) => {
            printer.error(&e);
            e.kind.exit_code()
        }
    });
    ExitCode::from(code.unwrap_or_else(|_| Kind::Bug.exit_code()))
}

fn run(cli: Cli, printer: &Printer) -> Result<u8> {
    let global = cli.global;
    match cli.command {
        Command::Init(args) => say(&init::run(&args)?, printer),
        Command::Discover(args) => {
            let folder = args::Folder {
                plan: args.plan.clone(),
            };
            let report = discover::run(&args, || {
                Ok(folder::PlanFolder::resolve(&folder, &global)?.root)
            })?;
            say(&report, printer)
        }
        Command::Schema => {
            printer.line(schema::run()?);
            Ok(exit::DONE)
        }
        Command::Plan(args) => plan::run(&args, &global, printer),
        Command::Review(args) => review::run(&args, &global, printer),
        Command::Rehearse(args) => rehearse::run(&args, &global, printer),
        Command::Replay(args) => replay::run(&args, &global, printer),
        Command::Migrate(args) => migrate::run(&args, &global, printer),
        Command::Status(args) => status::run(&args, &global, printer),
        Command::Rollback(args) => rollback::run(&args, &global, printer),
        Command::Skip(args) => rollback::skip(&args, &global, printer),
        Command::Checks(args) => checks::run(&args, &global, printer),
        Command::Explain(args) => explain::run(&args, &global, printer),
        Command::Hazards(args) => hazards::run(&args, &global, printer),
        Command::Cost(args) => cost::run(&args, &global, printer),
        Command::Policy(args) => policy::run(&args, &global, printer),
        Command::Finalize(args) => finalize::run(&args, &global, printer),
        Command::Completions { shell } => {
            shell::completions(shell);
            Ok(exit::DONE)
        }
        Command::Man { dir } => shell::man(&dir, printer),
    }
}

fn say(report: &discover::Report, printer: &Printer) -> Result<u8> {
    if printer.json() {
        printer.document(&report.json);
    } else {
        printer.line(report.text.trim_end());
        for note in &report.notes {
            printer.note(note);
        }
    }
    Ok(exit::DONE)
}

/// The whole tree, for completions and man pages.
pub fn tree() -> clap::Command {
    Cli::command()
}

fn wants_json(args: impl Iterator<Item = String>) -> bool {
    let args: Vec<String> = args.collect();
    args.windows(2)
        .any(|w| (w[0] == "-o" || w[0] == "--output") && w[1] == "json")
        || args
            .iter()
            .any(|a| a == "-ojson" || a == "-o=json" || a == "--output=json")
}

/// Help and version are answers; everything else that clap says is a usage error.
fn usage(printer: &Printer, e: &clap::Error) -> ExitCode {
    use clap::error::ErrorKind;
    match e.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            printer.line(e.to_string().trim_end());
            return ExitCode::SUCCESS;
        }
        _ if printer.json() => {
            let text = e.to_string();
            let message = text
                .lines()
                .next()
                .unwrap_or("")
                .trim_start_matches("error: ");
            printer.error(
                &Error::new(Kind::Usage, message)
                    .at("command line")
                    .remedy("crossfade --help"),
            );
        }
        _ => printer.note(e.to_string().trim_end()),
    }
    ExitCode::from(Kind::Usage.exit_code())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_is_consistent() {
        tree().debug_assert();
    }

    #[test]
    fn json_is_recognised_before_the_command_line_is_understood() {
        let json = |s: &str| wants_json(s.split(' ').map(Into::into));
        assert!(json("crossfade plan -o json"));
        assert!(json("crossfade -o json nonsense"));
        assert!(json("crossfade --output=json"));
        assert!(!json("crossfade plan -o text"));
    }

    #[test]
    fn every_verb_has_an_example_in_its_help() {
        let tree = tree();
        for verb in tree.get_subcommands() {
            let help = verb
                .get_after_help()
                .map(|h| h.to_string())
                .unwrap_or_default();
            assert!(help.contains("crossfade "), "{}: {help}", verb.get_name());
        }
    }
}
