//! Neuron voxels, the structure of type 11: activations of voxels by area, in columns.
//!
//! ```text
//! u8 11 | u8 1 | u16 areas | (8-byte cortical id, u32 offset, u32 bytes) × areas | data
//! data of an area = x u32 × n | y u32 × n | z u32 × n | p f32 × n
//! ```
//!
//! Numbers are little-endian; an offset counts from the structure's first byte.

use tectum::{Error, Result};

use super::container::VOXELS_HEADER;

/// Bytes before the heads of areas.
const HEADER: usize = 4;
/// Bytes of the head of an area.
const HEAD: usize = 16;
/// Bytes of a voxel, over the four columns.
const VOXEL: usize = 16;

/// A cortical id.
pub(crate) type CorticalId = [u8; 8];

/// A voxel's coordinates, and its activation.
pub(crate) type Voxel = ([u32; 3], f32);

/// The voxels of an area.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct AreaVoxels<'b> {
    pub id: CorticalId,
    /// Four columns of the same length.
    columns: &'b [u8],
}

impl<'b> AreaVoxels<'b> {
    /// The voxels, in order.
    pub fn voxels(self) -> impl Iterator<Item = Voxel> + use<'b> {
        let count = self.columns.len() / VOXEL;
        let word = move |column: usize, place: usize| {
            let begin = 4 * (column * count + place);
            let bytes = self.columns.get(begin..begin + 4);
            bytes
                .and_then(|bytes| bytes.try_into().ok())
                .map_or(0, u32::from_le_bytes)
        };
        (0..count).map(move |place| {
            let coordinates = [0, 1, 2].map(|column| word(column, place));
            (coordinates, f32::from_bits(word(3, place)))
        })
    }
}

/// How an id is named in messages: its characters, or its bytes in hexadecimal.
pub(crate) fn name(id: &CorticalId) -> String {
    match std::str::from_utf8(id) {
        Ok(text)
            if id
                .iter()
                .all(|byte| byte.is_ascii_graphic() || *byte == b' ') =>
        {
            format!("{text:?}")
        }
        _ => id.iter().map(|byte| format!("{byte:02x}")).collect(),
    }
}

/// Reads a structure, of which type and version are known.
///
/// # Errors
/// `Data`, naming the area, for heads that are cut off, data that is not within the structure,
/// begins within what precedes it or is no whole number of voxels.
pub(crate) fn parse(structure: &[u8]) -> Result<Vec<AreaVoxels<'_>>> {
    let count = match structure {
        [_, _, low, high, ..] => usize::from(u16::from_le_bytes([*low, *high])),
        _ => {
            return Err(Error::data(format!(
                "voxels: {} bytes; the number of areas is missing",
                structure.len()
            )));
        }
    };
    let mut end = HEADER + HEAD * count;
    let Some(heads) = structure.get(HEADER..end) else {
        return Err(Error::data(format!(
            "voxels: {} bytes; the heads of {count} areas need {end}",
            structure.len()
        )));
    };
    let mut areas = Vec::with_capacity(count);
    for head in heads.as_chunks::<HEAD>().0 {
        let [a, b, c, d, e, f, g, h, offset @ .., i, j, k, l] = *head;
        let id = [a, b, c, d, e, f, g, h];
        let begin = u32::from_le_bytes(offset) as usize;
        let length = u32::from_le_bytes([i, j, k, l]) as usize;
        let refused = |reason: String| Error::data(format!("voxels: area {}: {reason}", name(&id)));
        // Data that several areas share would be read again for each of them.
        if begin < end {
            return Err(refused(format!(
                "its data begins at byte {begin}, within what precedes it up to byte {end}"
            )));
        }
        end = begin.saturating_add(length);
        let columns = structure.get(begin..end).ok_or_else(|| {
            let size = structure.len();
            refused(format!("its data ends at byte {end} of {size}"))
        })?;
        if !length.is_multiple_of(VOXEL) {
            return Err(refused(format!(
                "its data has {length} bytes; a voxel has {VOXEL}"
            )));
        }
        areas.push(AreaVoxels { id, columns });
    }
    Ok(areas)
}

/// A structure of the voxels of areas.
pub(crate) fn write(areas: &[(CorticalId, Vec<Voxel>)]) -> Vec<u8> {
    let mut bytes = VOXELS_HEADER.to_vec();
    bytes.extend((areas.len() as u16).to_le_bytes());
    let mut offset = HEADER + HEAD * areas.len();
    for (id, voxels) in areas {
        let length = VOXEL * voxels.len();
        bytes.extend(id);
        bytes.extend((offset as u32).to_le_bytes());
        bytes.extend((length as u32).to_le_bytes());
        offset += length;
    }
    for (_, voxels) in areas {
        for axis in 0..3 {
            bytes.extend(voxels.iter().flat_map(|(at, _)| at[axis].to_le_bytes()));
        }
        bytes.extend(voxels.iter().flat_map(|(_, p)| p.to_le_bytes()));
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `CorticalMappedXYZPNeuronVoxels.serialize_to_bytes` of `feagi-rust-py-libs` 0.0.120
    /// wrote for the voxels (1, 0, 0) with 1.0 and (3, 0, 2) with 0.5 in the areas `iseen___` and
    /// `ivis`.
    const CLIENT: &str = "0b010200 \
        697365656e5f5f5f 24000000 20000000 6976697300000000 44000000 20000000 \
        0100000003000000 0000000000000000 0000000002000000 0000803f0000003f \
        0100000003000000 0000000000000000 0000000002000000 0000803f0000003f";

    fn bytes(hexadecimal: &str) -> Vec<u8> {
        let digits: Vec<u32> = hexadecimal.chars().filter_map(|c| c.to_digit(16)).collect();
        let pairs = digits.as_chunks::<2>().0.iter();
        pairs.map(|[high, low]| (high << 4 | low) as u8).collect()
    }

    fn read(structure: &[u8]) -> std::result::Result<Vec<(CorticalId, Vec<Voxel>)>, String> {
        let areas = parse(structure).map_err(|error| error.to_string())?;
        Ok(areas
            .into_iter()
            .map(|area| (area.id, area.voxels().collect()))
            .collect())
    }

    #[test]
    fn the_bytes_of_the_client_are_read_and_written() {
        let voxels = vec![([1, 0, 0], 1.0), ([3, 0, 2], 0.5)];
        let areas = vec![(*b"iseen___", voxels.clone()), (*b"ivis\0\0\0\0", voxels)];
        assert_eq!(read(&bytes(CLIENT)), Ok(areas.clone()));
        assert_eq!(write(&areas), bytes(CLIENT));
        assert_eq!(read(&write(&[])), Ok(vec![]));
        assert_eq!(
            read(&write(&[(*b"a_______", vec![])])),
            Ok(vec![(*b"a_______", vec![])])
        );
    }

    #[test]
    fn wrong_lengths_and_offsets_name_the_area() {
        let whole = bytes(CLIENT);
        let with = |place: usize, value: u8| {
            let mut bytes = whole.clone();
            bytes[place] = value;
            bytes
        };
        for (bytes, reason) in [
            (
                whole[..3].to_vec(),
                "voxels: 3 bytes; the number of areas is missing",
            ),
            (
                with(3, 1),
                "voxels: 100 bytes; the heads of 258 areas need 4132",
            ),
            (
                with(12, 0x23),
                "voxels: area \"iseen___\": its data begins at byte 35, within what precedes it up to byte 36",
            ),
            (
                with(28, 0x43),
                "voxels: area 6976697300000000: its data begins at byte 67, within what precedes it up to byte 68",
            ),
            (
                with(32, 0x21),
                "voxels: area 6976697300000000: its data ends at byte 101 of 100",
            ),
            (
                with(31, 0xff),
                "voxels: area 6976697300000000: its data ends at byte 4278190180 of 100",
            ),
            (
                with(32, 0x1f),
                "voxels: area 6976697300000000: its data has 31 bytes; a voxel has 16",
            ),
            (
                whole[..99].to_vec(),
                "voxels: area 6976697300000000: its data ends at byte 100 of 99",
            ),
        ] {
            assert_eq!(read(&bytes), Err(reason.to_owned()));
        }
    }
}
