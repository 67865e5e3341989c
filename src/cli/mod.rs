//! The command line.

pub mod discover;
pub mod init;
pub mod schema;

/// Runs the program.
pub fn main() -> std::process::ExitCode {
    std::process::ExitCode::SUCCESS
}
