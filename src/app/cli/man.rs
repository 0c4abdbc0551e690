//! Manual pages.

use crate::app::present::Failure;
use crate::support::diag::nearest;
use clap::Command;

/// The manual page of a program or, if `names` are given, of one of its commands, in roff.
///
/// # Errors
/// No command has this name.
pub(super) fn page(mut program: Command, names: &[String]) -> Result<Vec<u8>, Failure> {
    // Adds the options that all commands have, and the full names.
    program.build();
    let mut page = &program;
    for name in names {
        page = page.find_subcommand(name).ok_or_else(|| {
            let known = page.get_subcommands().map(Command::get_name);
            let help = match nearest(name, known) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!(
                    "`{} --help` lists the commands",
                    page.get_bin_name().unwrap_or("pactql")
                ),
            };
            Failure::usage(format!("there is no command `{name}`")).with_help(help)
        })?;
    }
    let mut text = Vec::new();
    clap_mangen::Man::new(page.clone()).render(&mut text)?;
    Ok(text)
}
