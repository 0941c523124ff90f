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

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::decompress;

    fn compressed(kind: &str, records: &[u8]) -> Vec<u8> {
        if kind == "zstd" {
            let level = ruzstd::encoding::CompressionLevel::Fastest;
            return ruzstd::encoding::compress_to_vec(records, level);
        }
        let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
        encoder.write_all(records).expect("memory");
        encoder.finish().expect("memory")
    }

    #[test]
    fn a_chunk_takes_no_more_memory_than_it_states() {
        let records: Vec<u8> = (0..1 << 22).map(|place: u32| (place >> 16) as u8).collect();
        for kind in ["zstd", "lz4"] {
            let bytes = compressed(kind, &records);
            assert!(bytes.len() < records.len() / 50, "{kind}: {}", bytes.len());
            let mut own = Vec::new();
            let whole = decompress(kind, &bytes, records.len() as u64, &mut own);
            assert_eq!((whole, own == records), (Ok(()), true), "{kind}");
            let mut own = Vec::new();
            let larger = decompress(kind, &bytes, 1000, &mut own).expect_err("larger");
            assert_eq!(
                larger,
                "is a chunk that has 1001 bytes in place of the 1000 that it states"
            );
            assert!(own.capacity() < 1 << 16, "{kind}: {}", own.capacity());
            let mut own = Vec::new();
            let claimed = decompress(kind, &bytes, 1 << 40, &mut own).expect_err("too large");
            assert!(
                claimed.contains("more than the maximum of 268435456"),
                "{claimed}"
            );
            assert_eq!(own.capacity(), 0);
            for end in (0..bytes.len()).step_by(97) {
                let cut = decompress(kind, &bytes[..end], records.len() as u64, &mut own);
                assert!(cut.is_err(), "{kind}: {end} of {}", bytes.len());
            }
        }
        let other = decompress("gzip", &[1], 1, &mut Vec::new()).expect_err("unknown");
        assert_eq!(
            other,
            "is a chunk compressed by \"gzip\"; zstd and lz4 are read"
        );
    }
}
