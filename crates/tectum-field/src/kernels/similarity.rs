//! Products of the current pattern with all stored ones.

use tectum::NativeCall;
use tectum::kernel::arguments::Slices;
use tectum::kernel::native::{for_each_chunk, simd};

use super::super::layout::*;
use super::Similarity;
use super::imprint_site::dot;

/// Rows that are processed together.
const ROWS: usize = 64;

pub fn native(
    call: &NativeCall<'_>,
    Similarity {
        descriptor,
        library,
        traits,
        products,
        kept,
        content,
    }: Similarity<Slices<'_>>,
) {
    let width = OCTANTS * content;
    let present = present(descriptor, content);
    for_each_chunk(
        &mut products[..kept],
        ROWS,
        call.threads_for(kept * width),
        |block, products| {
            simd(
                #[inline(always)]
                || {
                    for (i, product) in products.iter_mut().enumerate() {
                        let row = block * ROWS + i;
                        *product = if traits[row * TRAIT_WORDS] > 0.0 {
                            dot(&present, &library[row * width..][..width])
                        } else {
                            0.0
                        };
                    }
                },
            );
        },
    );
}

/// The current pattern: mean content of the octants.
pub fn present(descriptor: &[f32], content: usize) -> Vec<f32> {
    let mut pattern = vec![0.0; OCTANTS * content];
    for (octant, mean) in pattern.chunks_exact_mut(content).enumerate() {
        for region in regions_of(octant) {
            mean.iter_mut()
                .zip(&descriptor[region * content..])
                .for_each(|(mean, part)| *mean += part);
        }
        mean.iter_mut().for_each(|mean| *mean *= 0.125);
    }
    pattern
}

/// The eight regions of an octant.
pub fn regions_of(octant: usize) -> [usize; 8] {
    std::array::from_fn(|j| {
        let [x, y, z] = [4, 2, 1].map(|axis| 2 * (octant / axis % 2) + j / axis % 2);
        (x * 4 + y) * 4 + z
    })
}
