//! The places of downloads in the host's one block, and the copies that fill it.

use crate::launch::{Region, align};

/// One copy: a range of a buffer and its first byte in the block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    pub region: Region,
    pub place: usize,
}

/// The layout of the download block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DownloadLayout {
    /// Ranges to copy; adjacent ranges of a buffer are merged.
    pub pieces: Vec<Piece>,
    /// The place of each download in the block.
    pub places: Vec<std::ops::Range<usize>>,
    /// Bytes of the block.
    pub bytes: usize,
}

impl DownloadLayout {
    /// Lays the downloads out in order.
    pub fn of(downloads: &[Region]) -> Self {
        let mut layout = Self {
            pieces: Vec::new(),
            places: Vec::new(),
            bytes: 0,
        };
        for &region in downloads {
            let place = layout.place(region);
            layout.places.push(place..place + region.bytes);
            layout.bytes = layout.bytes.max(place + region.bytes);
        }
        layout
    }

    /// The place of a region, after growing the last piece or adding one.
    fn place(&mut self, region: Region) -> usize {
        if let Some(Piece {
            region: last,
            place,
        }) = self.pieces.last_mut()
        {
            let gap = align(last.bytes);
            if last.buffer == region.buffer && last.offset + gap == region.offset {
                last.bytes = gap + region.bytes;
                return *place + gap;
            }
        }
        let place = align(self.bytes);
        self.pieces.push(Piece { region, place });
        place
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn region(buffer: usize, offset: usize, bytes: usize) -> Region {
        Region {
            buffer,
            offset,
            bytes,
        }
    }

    #[test]
    fn downloads_of_a_buffer_in_a_row_are_one_piece() {
        let layout =
            DownloadLayout::of(&[region(3, 0, 100), region(3, 256, 512), region(3, 768, 4)]);
        assert_eq!(
            layout.pieces,
            [Piece {
                region: region(3, 0, 772),
                place: 0
            }]
        );
        assert_eq!(
            (layout.places, layout.bytes),
            (vec![0..100, 256..768, 768..772], 772)
        );
    }

    #[test]
    fn downloads_apart_are_pieces_of_one_block() {
        let layout = DownloadLayout::of(&[region(0, 0, 100), region(1, 0, 8), region(1, 512, 8)]);
        let pieces = [
            (region(0, 0, 100), 0),
            (region(1, 0, 8), 256),
            (region(1, 512, 8), 512),
        ];
        assert_eq!(
            layout.pieces,
            pieces.map(|(region, place)| Piece { region, place })
        );
        assert_eq!(
            (layout.places, layout.bytes),
            (vec![0..100, 256..264, 512..520], 520)
        );
    }

    #[test]
    fn no_downloads_are_no_block() {
        assert_eq!(
            DownloadLayout::of(&[]),
            DownloadLayout {
                pieces: vec![],
                places: vec![],
                bytes: 0
            }
        );
    }
}
