//! The place of the imprint.

use tectum::NativeCall;
use tectum::kernel::arguments::Slices;
use tectum::kernel::native::simd;

use super::super::layout::*;
use super::Place;

/// The running maximum of a score; among equals the first.
pub struct RunningArgmax {
    pub score: f32,
    pub site: usize,
}

impl RunningArgmax {
    pub fn new() -> Self {
        Self {
            score: -1e30,
            site: 0,
        }
    }

    pub fn update(&mut self, score: f32, site: usize) {
        if score > self.score {
            *self = Self { score, site };
        }
    }
}

pub fn native(
    _: &NativeCall<'_>,
    Place {
        sites,
        control,
        sites_x,
        sites_y,
        sites_z,
        content,
        block,
    }: Place<Slices<'_>>,
) {
    let size = [sites_x, sites_y, sites_z];
    let pattern = control[CONTROL_PATTERN..][..content].to_vec();
    let length = dot(&pattern, &pattern).sqrt();
    let [products, energies] = [true, false].map(|is_product| {
        let other = |site: &[f32]| {
            if is_product {
                dot(&pattern, site)
            } else {
                dot(site, site)
            }
        };
        simd(
            #[inline(always)]
            || sites.chunks_exact(content).map(other).collect::<Vec<f32>>(),
        )
    });

    let [mut existing, mut resonant, mut similar, mut empty] =
        [(); 4].map(|()| RunningArgmax::new());
    for (site, (product, square)) in products.iter().zip(&energies).enumerate() {
        let cosine = product / (length * square.sqrt() + 1e-6);
        let energy = square / content as f32;
        if cosine > 0.9 && energy < 2.0 {
            existing.update(cosine, site);
        }
        resonant.update(
            neighbourhood_mean(&products, size, site) / (length + 1e-6),
            site,
        );
        similar.update(cosine, site);
        empty.update(-energy, site);
    }
    let (kind, found) = if existing.score > 0.9 {
        (0.0, existing)
    } else if resonant.score > 0.3 {
        (1.0, resonant)
    } else if similar.score > 0.1 {
        (2.0, similar)
    } else {
        (3.0, empty)
    };
    let [_, sites_y, sites_z] = size;
    let place = [
        found.site / (sites_y * sites_z),
        found.site / sites_z % sites_y,
        found.site % sites_z,
    ];
    for (axis, place) in place.into_iter().enumerate() {
        control[CONTROL_PLACE + axis] = (place * block + block / 2) as f32;
    }
    control[CONTROL_PLACE_KIND] = kind;
    control[CONTROL_SCORE] = found.score;
}

/// The mean over the sites within one step along every axis.
fn neighbourhood_mean(
    products: &[f32],
    [sites_x, sites_y, sites_z]: [usize; 3],
    site: usize,
) -> f32 {
    let (x, y, z) = (
        site / (sites_y * sites_z),
        site / sites_z % sites_y,
        site % sites_z,
    );
    let near = |at: usize, size: usize| at.saturating_sub(1)..(at + 2).min(size);
    let (mut sum, mut count) = (0.0, 0.0);
    for i in near(x, sites_x) {
        for j in near(y, sites_y) {
            for k in near(z, sites_z) {
                sum += products[(i * sites_y + j) * sites_z + k];
                count += 1.0;
            }
        }
    }
    sum / count
}

/// a · b in eight lanes.
#[inline(always)]
pub fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut lanes = [0.0; 8];
    for (a, b) in a.as_chunks::<8>().0.iter().zip(b.as_chunks::<8>().0) {
        for lane in 0..8 {
            lanes[lane] += a[lane] * b[lane];
        }
    }
    tectum::kernel::lanes::fold(lanes)
}
