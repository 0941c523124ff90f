//! The 96 classes: coordinates in the boundary, mirrors and neighbours.

use serde::{Deserialize, Serialize};

/// Classes.
pub const CLASSES: u32 = 96;
/// Pages of a class.
pub const PAGES: u32 = 48;
/// Bytes of a page.
pub const PAGE_BYTES: u32 = 256;
/// Bytes of the boundary: every byte of every page of every class.
pub const BOUNDARY_BYTES: u64 = (CLASSES * PAGES * PAGE_BYTES) as u64;
/// Number of phases; a lane's phase is less.
pub const PHASES: u32 = 768;
/// The classes whose accumulators a unity test adds.
pub const UNITY: [u32; 2] = [1, 4];

/// A coordinate in the boundary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Phi {
    /// Below 96.
    pub class: u8,
    /// Below 48.
    pub page: u8,
    /// Any value.
    pub byte: u8,
}

impl Phi {
    /// The offset in the boundary: class·12,288 + page·256 + byte.
    pub const fn offset(self) -> u64 {
        boundary_offset(self.class as u32, self.page as u32, self.byte as u32)
    }
}

/// The offset in the boundary of (class mod 96, page mod 48, byte mod 256).
pub const fn boundary_offset(class: u32, page: u32, byte: u32) -> u64 {
    (class % CLASSES * PAGES * PAGE_BYTES + page % PAGES * PAGE_BYTES + byte % PAGE_BYTES) as u64
}

/// The class whose label differs from that of (class mod 96) only in e7.
pub const fn mirror(class: u32) -> u32 {
    let class = class % CLASSES;
    if (class / 3).is_multiple_of(2) {
        class + 3
    } else {
        class - 3
    }
}

/// The neighbours of (class mod 96) in ascending order, and how many there are (5 or 6; what
/// follows is 0).
///
/// A label is (e1, e2, e3, e6, e7, d45) with index ((((e1·2 + e2)·2 + e3)·2 + e6)·2 + e7)·3 + (d45 +
/// 1). Neighbours differ in one of e1, e2, e3, e6, or by one step of d45 in −1, 0, 1.
pub fn neighbors(class: u32) -> ([u32; 6], usize) {
    const STRIDES: [u32; 4] = [48, 24, 12, 6];
    let class = class % CLASSES;
    let flips = STRIDES.map(|stride| {
        if (class / stride).is_multiple_of(2) {
            class + stride
        } else {
            class - stride
        }
    });
    let steps = match class % 3 {
        0 => vec![class + 1],
        1 => vec![class - 1, class + 1],
        _ => vec![class - 1],
    };
    let mut found: Vec<u32> = flips.into_iter().chain(steps).collect();
    found.sort_unstable();
    let mut all = [0; 6];
    all[..found.len()].copy_from_slice(&found);
    (all, found.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The facts of the class graph: 256 edges, 32 vertices of degree 6, both symmetric, mirrors an
    /// involution without edges.
    #[test]
    fn the_graph_has_256_edges_and_mirrors_pair_classes() {
        let degrees: Vec<usize> = (0..CLASSES).map(|class| neighbors(class).1).collect();
        assert_eq!(degrees.iter().sum::<usize>(), 2 * 256);
        assert_eq!(degrees.iter().filter(|degree| **degree == 6).count(), 32);
        for class in 0..CLASSES {
            let (near, count) = neighbors(class);
            assert!(near[..count].is_sorted());
            assert!(
                near[..count]
                    .iter()
                    .all(|other| neighbors(*other).0[..neighbors(*other).1].contains(&class))
            );
            assert_eq!(mirror(mirror(class)), class);
            assert!(mirror(class) != class && !near[..count].contains(&mirror(class)));
        }
        assert_eq!(neighbors(0), ([1, 6, 12, 24, 48, 0], 5));
        assert_eq!((mirror(0), mirror(3), mirror(95)), (3, 0, 92));
        assert_eq!(
            Phi {
                class: 95,
                page: 47,
                byte: 255
            }
            .offset(),
            BOUNDARY_BYTES - 1
        );
    }
}
