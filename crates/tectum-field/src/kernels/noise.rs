//! The draws of many elements.

use tectum::NativeCall;
use tectum::kernel::native::{BLOCK, for_each_block, simd};

use super::super::draw::draw;
use super::super::layout::LIVE_KEY;

pub fn native(call: &NativeCall<'_>) {
    let (live, noise) = (call.read::<u32>(0), call.write::<f32>(1));
    let key = [live[LIVE_KEY], live[LIVE_KEY + 1]];
    let (first, n) = (call.u32(0), call.size(1));
    for_each_block(&mut noise[..n], BLOCK, call.threads_for(4 * n), |block, noise| {
        let first = first.wrapping_add((block * BLOCK) as u32);
        simd(
            #[inline(always)]
            || {
                for (i, noise) in noise.iter_mut().enumerate() {
                    *noise = draw(first.wrapping_add(i as u32), key) as f32;
                }
            },
        );
    });
}
