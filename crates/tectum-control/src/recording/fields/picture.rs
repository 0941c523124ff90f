//! Pictures of cameras as arrays.

use tectum::{Error, Result};

use crate::message::{Array, ElementType};

/// A picture as its message has it.
pub(super) struct Picture<'p> {
    pub height: usize,
    pub width: usize,
    /// Bytes of a row, with padding.
    pub step: usize,
    /// What a pixel is, such as `rgb8`.
    pub encoding: &'p str,
    /// Whether numbers of several bytes are big-endian.
    pub is_big: bool,
    pub data: &'p [u8],
}

/// Encodings: name, bytes of a pixel, the number of colours, and their order as red, green and blue.
const ENCODINGS: [(&str, usize, usize, &[usize]); 12] = [
    ("rgb8", 3, 3, &[0, 1, 2]),
    ("bgr8", 3, 3, &[2, 1, 0]),
    ("rgba8", 4, 4, &[0, 1, 2, 3]),
    ("bgra8", 4, 4, &[2, 1, 0, 3]),
    ("mono8", 1, 1, &[0]),
    ("8UC1", 1, 1, &[0]),
    ("8UC3", 3, 3, &[0, 1, 2]),
    ("8UC4", 4, 4, &[0, 1, 2, 3]),
    ("mono16", 2, 1, &[0]),
    ("16UC1", 2, 1, &[0]),
    ("32FC1", 4, 1, &[0]),
    ("32FC3", 12, 3, &[0, 1, 2]),
];

impl Picture<'_> {
    /// The picture without padding, of shape (rows, columns) or (rows, columns, colours), in the
    /// order red, green, blue. Pixels of 16 bits are float32.
    ///
    /// # Errors
    /// `Unsupported` for another encoding; `Data` for data of another size.
    pub fn to_array(&self) -> Result<Array> {
        let known = ENCODINGS.iter().find(|(name, ..)| *name == self.encoding);
        let (_, bytes, colors, order) = known.ok_or_else(|| {
            Error::unsupported(format!(
                "pictures of the encoding {:?} are not read; known: {}",
                self.encoding,
                ENCODINGS.map(|(name, ..)| name).join(", ")
            ))
        })?;
        let row = self
            .width
            .checked_mul(*bytes)
            .filter(|row| *row <= self.step);
        let size = self.height.checked_mul(self.step);
        let row = row.filter(|row| *row > 0 && size == Some(self.data.len()));
        let row = row.ok_or_else(|| {
            Error::data(format!(
                "a picture of {} rows, {} columns and {} bytes for each row has {} bytes",
                self.height,
                self.width,
                self.step,
                self.data.len()
            ))
        })?;
        let rows = self
            .data
            .chunks_exact(self.step)
            .map(|padded| &padded[..row]);
        let size = bytes / colors;
        let pixels = rows.flat_map(|row| row.chunks_exact(*bytes));
        let elements = pixels.flat_map(|pixel| {
            order
                .iter()
                .map(move |color| &pixel[color * size..][..size])
        });
        let (element, data) = match size {
            1 => (ElementType::U8, elements.flatten().copied().collect()),
            2 => {
                let number = |bytes: &[u8]| {
                    let pair = [bytes[0], bytes[1]];
                    f32::from(match self.is_big {
                        true => u16::from_be_bytes(pair),
                        false => u16::from_le_bytes(pair),
                    })
                };
                let bytes = elements.flat_map(|bytes| number(bytes).to_le_bytes());
                (ElementType::F32, bytes.collect::<Vec<u8>>())
            }
            _ => {
                let number = |bytes: &[u8]| {
                    let mut four = [bytes[0], bytes[1], bytes[2], bytes[3]];
                    if self.is_big {
                        four.reverse();
                    }
                    four
                };
                (ElementType::F32, elements.flat_map(number).collect())
            }
        };
        let mut shape = vec![self.height, self.width];
        if *colors > 1 {
            shape.push(*colors);
        }
        Array::new(element, shape, data).map_err(Error::data)
    }
}
