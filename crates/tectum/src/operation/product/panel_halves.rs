//! Panels of half-width floats, widened a slice at a time, which stays in L1.

use pulp::Simd;

use crate::kernel::native::{prefetch_line, prefetch_line_l2};
use crate::kernel::pack::{bf16_bits, f16_bits};
use crate::operation::product::panel_format::PANEL;
use crate::operation::product::strip::{PanelRows, Right, vectors};

/// Rows of k that are widened at a time: with those of a second panel 16 KiB of floats.
const SLICE: usize = 128;
/// Prefetch distance in rows of k.
const PREFETCH_ROWS: usize = 128;

/// A panel [k, 16] of f16 or bf16, or some of its rows.
#[derive(Clone, Copy)]
pub(crate) struct HalfPanel<'a, const IS_F16: bool> {
    rows: &'a [[u16; PANEL]],
    /// The same, and the panel after them.
    ahead: &'a [[u16; PANEL]],
    /// Rows of the panel from the first of these on.
    left: usize,
    /// Rows between the end of the panel and the panel that is read next in its place.
    skip: usize,
}

impl<'a, const IS_F16: bool> HalfPanel<'a, IS_F16> {
    /// The first `k` rows of words; the panel that is read next in this one's place begins this
    /// many words further.
    pub fn new(words: &'a [u32], k: usize, next: usize) -> Self {
        let ahead = bytemuck::cast_slice::<_, u16>(words).as_chunks().0;
        Self {
            rows: &ahead[..k],
            ahead,
            left: k,
            skip: (2 * next / PANEL).saturating_sub(k),
        }
    }

    /// A row of this panel, counted from the first of these, or of the next.
    #[inline(always)]
    fn place(self, row: usize) -> usize {
        if row < self.left {
            row
        } else {
            row + self.skip
        }
    }
}

impl<const IS_F16: bool> PanelRows for HalfPanel<'_, IS_F16> {
    #[inline(always)]
    fn depth(self) -> usize {
        self.rows.len()
    }

    #[inline(always)]
    fn part(self, from: usize, depth: usize) -> Self {
        Self {
            rows: &self.rows[from..][..depth],
            ahead: &self.ahead[from..],
            left: self.left - from,
            skip: self.skip,
        }
    }

    #[inline(always)]
    fn prefetch_after(self, k: usize) {
        prefetch_line(self.ahead, self.place(k + PREFETCH_ROWS));
    }

    #[inline(always)]
    fn row<S: Simd, const VECTORS: usize>(self, k: usize) -> [S::f32s; VECTORS] {
        let halves = &self.rows[k];
        #[cfg(target_arch = "x86_64")]
        if S::F32_LANES == PANEL {
            // SAFETY: on x86-64 vectors of 16 floats are those of AVX-512 F.
            return vectors::<S, VECTORS>(&unsafe { x86::widen_row::<IS_F16>(halves) });
        }
        let mut row = [0.0; PANEL];
        for (to, half) in row.iter_mut().zip(halves) {
            *to = f32::from_bits(if IS_F16 {
                f16_bits(u32::from(*half))
            } else {
                bf16_bits(u32::from(*half))
            });
        }
        vectors::<S, VECTORS>(&row)
    }
}

impl<const IS_F16: bool> Right for HalfPanel<'_, IS_F16> {
    const SLICE: usize = SLICE;
    const SCRATCH: usize = SLICE * PANEL;
    type Rows = Self;

    #[inline(always)]
    fn rows(self) -> Self {
        self
    }

    #[inline(always)]
    fn widen(self, from: usize, to: &mut [[f32; PANEL]]) {
        for row in (0..to.len()).step_by(2) {
            prefetch_line_l2(self.ahead, self.place(from + to.len() + row));
        }
        let (halves, to) = (
            self.rows[from..][..to.len()].as_flattened(),
            to.as_flattened_mut(),
        );
        if IS_F16 {
            return widen_f16(halves, to);
        }
        to.iter_mut()
            .zip(halves)
            .for_each(|(to, half)| *to = f32::from_bits(bf16_bits(u32::from(*half))));
    }
}

/// Widens as many halves as there are floats.
#[inline(always)]
pub(crate) fn widen_f16(halves: &[u16], to: &mut [f32]) {
    #[cfg(target_arch = "x86_64")]
    if to.len().is_multiple_of(PANEL) {
        if std::arch::is_x86_feature_detected!("avx512f") {
            // SAFETY: the machine has the instructions.
            return unsafe { x86::widen_by_16(halves, to) };
        }
        if std::arch::is_x86_feature_detected!("f16c") {
            // SAFETY: as above.
            return unsafe { x86::widen_by_8(halves, to) };
        }
    }
    to.iter_mut()
        .zip(halves)
        .for_each(|(to, half)| *to = f32::from_bits(f16_bits(u32::from(*half))));
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        __m128i, __m256i, _mm256_cvtph_ps, _mm512_cvtepu16_epi32, _mm512_cvtph_ps,
        _mm512_slli_epi32,
    };

    /// # Safety
    /// The machine has AVX-512 F.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub unsafe fn widen_row<const IS_F16: bool>(halves: &[u16; 16]) -> [f32; 16] {
        let halves = pulp::cast::<[u16; 16], __m256i>(*halves);
        if IS_F16 {
            pulp::cast(_mm512_cvtph_ps(halves))
        } else {
            pulp::cast(_mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(halves)))
        }
    }

    /// Whole vectors of 16.
    ///
    /// # Safety
    /// The machine has AVX-512 F.
    #[target_feature(enable = "avx512f")]
    pub unsafe fn widen_by_16(halves: &[u16], to: &mut [f32]) {
        for (to, halves) in to
            .as_chunks_mut::<16>()
            .0
            .iter_mut()
            .zip(halves.as_chunks::<16>().0)
        {
            // SAFETY: by the caller's contract.
            *to = unsafe { widen_row::<true>(halves) };
        }
    }

    /// Whole vectors of 8.
    ///
    /// # Safety
    /// The machine has F16C.
    #[target_feature(enable = "avx,f16c")]
    pub unsafe fn widen_by_8(halves: &[u16], to: &mut [f32]) {
        for (to, halves) in to
            .as_chunks_mut::<8>()
            .0
            .iter_mut()
            .zip(halves.as_chunks::<8>().0)
        {
            *to = pulp::cast(_mm256_cvtph_ps(pulp::cast::<[u16; 8], __m128i>(*halves)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_of_a_number_is_widened_as_integers_do_it() {
        let words: Vec<u32> = (0..0x8000u32)
            .map(|word| (2 * word) | ((2 * word + 1) << 16))
            .collect();
        check::<true>(&words, f16_bits);
        check::<false>(&words, bf16_bits);
    }

    fn check<const IS_F16: bool>(words: &[u32], widen: fn(u32) -> u32) {
        let mut room = [[0.0; PANEL]; SLICE];
        let panel = HalfPanel::<IS_F16>::new(words, words.len() * 2 / PANEL, words.len());
        for from in (0..panel.depth()).step_by(SLICE) {
            panel.widen(from, &mut room);
            for (at, value) in room.as_flattened().iter().enumerate() {
                let wanted = f32::from_bits(widen((from * PANEL + at) as u32));
                assert!(
                    value.to_bits() == wanted.to_bits() || value.is_nan() && wanted.is_nan(),
                    "{IS_F16} {}",
                    from * PANEL + at
                );
            }
        }
    }
}
