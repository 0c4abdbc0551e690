//! inspect_ai's `.eval` files: ZIP archives of a log without its samples, and of the samples, which are unpacked one at
//! a time. This file must not know messages.

use super::input::ReadPart;
use crate::tree::InputError;
use std::fmt::Display;
use std::io::{Cursor, Read as _};

/// The most bytes of one file of an archive, after unpacking.
const MOST: u64 = 1 << 30;

pub(super) fn is_archive(bytes: &[u8]) -> bool {
    bytes.starts_with(b"PK\x03\x04")
}

/// Gives the log, with its reductions, and then each sample in the order of the archive, all with their places.
pub(super) fn each(bytes: &[u8], read: &mut ReadPart<'_>) -> Result<(), InputError> {
    // What an archive holds is written at its end.
    let mut archive = zip::ZipArchive::new(Cursor::new(bytes)).map_err(|error| {
        let message = format!("this ZIP archive is cut off or damaged: {error}");
        InputError::at_document(message)
    })?;
    let names = archive.file_names().flatten().map(|name| name.into_owned());
    let names: Vec<String> = names.collect();
    let mut unpack = |name: &str| {
        let file = archive.by_name(name).map_err(|error| refused(&error))?;
        let mut text = String::new();
        match file.take(MOST + 1).read_to_string(&mut text) {
            Ok(length) if length as u64 > MOST => Err(refused(&format!("{name} is too large"))),
            Ok(_) => Ok(text),
            Err(error) => Err(refused(&error)),
        }
    };
    // A run that has not ended has no header yet.
    let mut log = unpack("header.json").or_else(|_| unpack("_journal/start.json"))?;
    if let (Some(members), Ok(reductions)) =
        (log.trim_end().strip_suffix('}'), unpack("reductions.json"))
    {
        log = format!("{members},\"reductions\":{reductions}}}");
    }
    read("", log)?;
    for name in names.iter().filter(|name| name.starts_with("samples/")) {
        read(name, unpack(name)?)?;
    }
    Ok(())
}

fn refused(error: &dyn Display) -> InputError {
    InputError::at_document(format!(
        "expected a log of inspect_ai in this ZIP archive: {error}"
    ))
}
