//! Reading files, standard input and compressed inputs, within a limit.

use super::exit::{Exit, Failure};
use std::fs::File;
use std::io::{self, BufReader, Read, Write};

/// The name that stands for standard input.
pub(super) const STDIN: &str = "-";

/// The first bytes of every gzip member.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Reads a whole file or, for `-`, standard input; gzip is unpacked wherever its first bytes stand.
///
/// # Errors
/// A missing or unreadable file; an input of more than `max` bytes once unpacked.
pub(super) fn read(name: &str, max: u64) -> Result<Vec<u8>, Failure> {
    if name == STDIN {
        return unpack("standard input", Box::new(io::stdin().lock()), max);
    }
    let file = File::open(name).map_err(|error| Failure::file(name, &error))?;
    if file.metadata().is_ok_and(|data| data.is_dir()) {
        return Err(Failure::Plain(
            Exit::Io,
            format!("{name}: is a directory"),
            None,
        ));
    }
    unpack(name, Box::new(file), max)
}

fn unpack(name: &str, source: Box<dyn Read + '_>, max: u64) -> Result<Vec<u8>, Failure> {
    let failed = |error: io::Error| Failure::file(name, &error);
    let mut source = BufReader::with_capacity(1 << 16, source);
    let mut start = Vec::new();
    source
        .by_ref()
        .take(2)
        .read_to_end(&mut start)
        .map_err(failed)?;
    let packed = start == GZIP;
    let source = io::Cursor::new(start).chain(source);
    let mut bytes = Vec::new();
    // One byte more than allowed tells that there is more.
    let limit = max.saturating_add(1);
    let outcome = if packed {
        let unpacker = flate2::bufread::MultiGzDecoder::new(BufReader::new(source));
        unpacker.take(limit).read_to_end(&mut bytes)
    } else {
        source.take(limit).read_to_end(&mut bytes)
    };
    match outcome {
        Ok(_) if bytes.len() as u64 > max => Err(Failure::Plain(
            Exit::Input,
            format!("{name}: larger than {max} bytes"),
            Some("--max-input BYTES raises the limit".into()),
        )),
        Ok(_) => Ok(bytes),
        Err(error) if packed => Err(Failure::Plain(
            Exit::Input,
            format!("{name}: broken gzip data: {error}"),
            None,
        )),
        Err(error) => Err(failed(error)),
    }
}

/// Writes a file whole, through a neighbour that is renamed, so that a failure leaves no half.
///
/// # Errors
/// Those of the writer and of the file system.
pub(super) fn write(
    name: &str,
    produce: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::file(name, &error);
    let path = std::path::Path::new(name);
    // Devices and pipes are written in place: a rename would replace them by a file.
    if path.metadata().is_ok_and(|data| !data.is_file()) {
        let mut file = io::BufWriter::new(File::create(path).map_err(failed)?);
        return produce(&mut file)
            .and_then(|()| file.flush())
            .map_err(failed);
    }
    let mut part = path.as_os_str().to_owned();
    part.push(format!(".{}.part", std::process::id()));
    let outcome = File::create(&part).and_then(|file| {
        let mut file = io::BufWriter::new(file);
        produce(&mut file)?;
        file.flush()?;
        std::fs::rename(&part, path)
    });
    outcome.map_err(|error| {
        // The first failure is the one to tell.
        let _ = std::fs::remove_file(&part);
        failed(error)
    })
}
