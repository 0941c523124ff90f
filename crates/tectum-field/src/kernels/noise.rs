//! The draws of many elements.

use tectum::NativeCall;
use tectum::kernel::arguments::Slices;
use tectum::kernel::native::{BLOCK, for_each_block, simd};

use super::super::draw::draw;
use super::super::layout::LIVE_KEY;
use super::Noise;

pub fn native(
    call: &NativeCall<'_>,
    Noise {
        live,
        noise,
        first,
        n,
    }: Noise<Slices<'_>>,
) {
    let key = [live[LIVE_KEY], live[LIVE_KEY + 1]];
    for_each_block(
        &mut noise[..n],
        BLOCK,
        call.threads_for(4 * n),
        |block, noise| {
            let first = first.wrapping_add((block * BLOCK) as u32);
            simd(
                #[inline(always)]
                || {
                    for (i, noise) in noise.iter_mut().enumerate() {
                        *noise = draw(first.wrapping_add(i as u32), key) as f32;
                    }
                },
            );
        },
    );
}
