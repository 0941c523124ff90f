//! Means of the sites.

use tectum::NativeCall;
use tectum::kernel::arguments::Slices;
use tectum::kernel::native::{for_each_chunk, simd};

use super::Pool;

pub fn native(
    call: &NativeCall<'_>,
    Pool {
        pooled,
        sites,
        ny,
        nz,
        content,
        block,
        ..
    }: Pool<Slices<'_>>,
) {
    let line = nz / block * content;
    let scale = 1.0 / (block * block * block) as f32;
    let across = ny / block;
    let whole = sites.len() / line * line;
    for_each_chunk(
        &mut sites[..whole],
        line,
        call.threads_for(pooled.len()),
        |column, sites| {
            simd(
                #[inline(always)]
                || {
                    let first = (column / across) * block * ny + (column % across) * block;
                    sites.fill(0.0);
                    for row in 0..block * block {
                        let sums =
                            &pooled[(first + row / block * ny + row % block) * line..][..line];
                        sites
                            .iter_mut()
                            .zip(sums)
                            .for_each(|(site, sum)| *site += sum);
                    }
                    sites.iter_mut().for_each(|site| *site *= scale);
                },
            );
        },
    );
}
