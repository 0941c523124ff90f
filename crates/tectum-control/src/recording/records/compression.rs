//! Compressed chunks.

use std::io::Read;

/// The maximum size of the records of a compressed chunk.
const MAX_CHUNK: u64 = 1 << 28;

/// Decompresses the records of a chunk that states their size; the reason for a chunk that is
/// refused.
pub(super) fn decompress(
    kind: &str,
    bytes: &[u8],
    size: u64,
    records: &mut Vec<u8>,
) -> Result<(), String> {
    if size > MAX_CHUNK {
        return Err(format!(
            "is a chunk of {size} bytes, more than the maximum of {MAX_CHUNK}"
        ));
    }
    let failed = |error: &dyn std::fmt::Display| {
        format!("is a chunk that {kind} cannot decompress: {error}")
    };
    records.clear();
    // The memory grows with what is decompressed, not with what the chunk states.
    match kind {
        "lz4" => lz4_flex::frame::FrameDecoder::new(bytes)
            .take(size + 1)
            .read_to_end(records)
            .map_err(|error| failed(&error))?,
        "zstd" => ruzstd::decoding::StreamingDecoder::new(bytes)
            .map_err(|error| failed(&error))?
            .take(size + 1)
            .read_to_end(records)
            .map_err(|error| failed(&error))?,
        _ => {
            return Err(format!(
                "is a chunk compressed by {kind:?}; zstd and lz4 are read"
            ));
        }
    };
    match records.len() as u64 == size {
        true => Ok(()),
        false => Err(format!(
            "is a chunk that has {} bytes in place of the {size} that it states",
            records.len()
        )),
    }
}
