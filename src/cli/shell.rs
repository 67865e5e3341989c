//! Completions and man pages, from the same tree as the help.

use super::printer::Printer;
use super::{exit, folder};
use crate::error::Result;
use std::path::Path;

/// Prints a completion script.
pub fn completions(shell: clap_complete::Shell) {
    let mut script = vec![];
    clap_complete::generate(shell, &mut super::tree(), "crossfade", &mut script);
    // Nobody reads any more: no error.
    let _ = std::io::Write::write_all(&mut std::io::stdout(), &script);
}

/// Writes `crossfade.1` and one page per verb.
pub fn man(dir: &Path, printer: &Printer) -> Result<u8> {
    std::fs::create_dir_all(dir).map_err(|e| folder::io(dir, &e))?;
    clap_mangen::generate_to(super::tree(), dir).map_err(|e| folder::io(dir, &e))?;
    printer.text(format!("man pages are in {}", dir.display()));
    Ok(exit::DONE)
}
