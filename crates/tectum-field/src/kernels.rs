//! The kernels of a cycle, with their native twins in the files below.

mod act;
mod evolve;
mod imprint_site;
mod noise;
mod pool;
mod recall;
mod sense;
mod similarity;

use std::sync::{Arc, LazyLock};

use tectum::{DType, Kernel, KernelBuilder, NativeCall, Prelude};

use super::layout;
use super::storage::Storage;
use crate::kernel::{built_in, words};

/// Device code of the draw, prepended to the kernels that use it.
const DRAW: &str = include_str!("../kernels/field_draw.wgsl");
/// Device code of the current pattern, prepended to the kernels that use it.
const OCTANT: &str = include_str!("../kernels/field_octant.wgsl");

/// Products of the current pattern with all stored ones.
pub static SIMILARITY: LazyLock<Arc<Kernel>> = LazyLock::new(|| {
    let builder = Kernel::define("field_similarity").read("descriptor", DType::F32).read("library", DType::F32);
    let builder = builder.read("traits", DType::F32).write("products", DType::F32);
    finish(builder, &["kept", "content"], &[OCTANT, include_str!("../kernels/field_similarity.wgsl")], similarity::native)
});

/// The library's recall and storage.
pub static RECALL: LazyLock<Arc<Kernel>> = LazyLock::new(|| {
    let builder = Kernel::define("field_recall").prelude(Prelude::Tree).read("live", DType::U32).read("descriptor", DType::F32);
    let builder = ["products", "library", "traits", "memory"].into_iter().fold(builder, |builder, name| builder.read_write(name, DType::F32));
    let builder = builder.write("pull", DType::F32);
    finish(builder, &["patterns", "content", "channels"], &[OCTANT, include_str!("../kernels/field_recall.wgsl")], recall::native)
});

/// Prediction, error and modulation.
pub static SENSE: LazyLock<Arc<Kernel>> = LazyLock::new(|| {
    let builder = Kernel::define("field_sense").prelude(Prelude::Tree).read("live", DType::U32).read("descriptor", DType::F32);
    let builder = builder.read_write("memory", DType::F32).write("control", DType::F32);
    finish(builder, &["sensors", "motors", "content", "channels"], &[include_str!("../kernels/field_sense.wgsl")], sense::native)
});

/// The place of the imprint.
pub static PLACE: LazyLock<Arc<Kernel>> = LazyLock::new(|| {
    let builder = Kernel::define("field_place").read("sites", DType::F32).read_write("control", DType::F32);
    finish(builder, &["sites_x", "sites_y", "sites_z", "content", "block"], &[include_str!("../kernels/field_place.wgsl")], imprint_site::native)
});

/// One step of the field.
pub static EVOLVE: LazyLock<Arc<Kernel>> = LazyLock::new(|| evolve_kernel(Storage::F32));

/// One step of a field stored as bf16.
pub static EVOLVE_BF16: LazyLock<Arc<Kernel>> = LazyLock::new(|| evolve_kernel(Storage::Bf16));

fn evolve_kernel(storage: Storage) -> Arc<Kernel> {
    let (name, dtype, how, native): (_, _, _, fn(&NativeCall<'_>)) = match storage {
        Storage::F32 => ("field_evolve", DType::F32, include_str!("../kernels/field_f32.wgsl"), evolve::native_f32),
        Storage::Bf16 => ("field_evolve_bf16", DType::U32, include_str!("../kernels/field_bf16.wgsl"), evolve::native_bf16),
    };
    let builder = Kernel::define(name).prelude(Prelude::Tree).read("x", dtype).read("live", DType::U32);
    let builder = ["control", "tables", "pull"].into_iter().fold(builder, |builder, name| builder.read(name, DType::F32));
    let builder = builder.write("y", dtype).write("rows", DType::F32).write("pooled", DType::F32);
    let bodies = [DRAW, how, include_str!("../kernels/field_evolve.wgsl")];
    finish(builder, &["nx", "ny", "nz", "channels", "boundary", "block", "first", "planes"], &bodies, native)
}

/// Means of the sites.
pub static POOL: LazyLock<Arc<Kernel>> = LazyLock::new(|| {
    let builder = Kernel::define("field_pool").read("pooled", DType::F32).write("sites", DType::F32);
    finish(builder, &["nx", "ny", "nz", "content", "block"], &[include_str!("../kernels/field_pool.wgsl")], pool::native)
});

/// Statistics, regions and motors.
pub static ACT: LazyLock<Arc<Kernel>> = LazyLock::new(|| {
    let builder = Kernel::define("field_act").prelude(Prelude::Tree).read("rows", DType::F32).read("live", DType::U32);
    let builder = builder.read("control", DType::F32).read("site_means", DType::F32).read_write("memory", DType::F32);
    let builder = builder.write("descriptor", DType::F32).write("report", DType::F32);
    let params = ["nx", "ny", "nz", "content", "channels", "block", "motors"];
    finish(builder, &params, &[DRAW, include_str!("../kernels/field_act.wgsl")], act::native)
});

/// The draws alone.
pub static NOISE: LazyLock<Arc<Kernel>> = LazyLock::new(|| {
    let builder = Kernel::define("field_noise").read("live", DType::U32).write("noise", DType::F32);
    finish(builder, &["first", "n"], &[DRAW, include_str!("../kernels/field_noise.wgsl")], noise::native)
});

/// The kernels of the field brain.
pub fn kernels() -> Vec<Arc<Kernel>> {
    [&SIMILARITY, &RECALL, &SENSE, &PLACE, &EVOLVE, &EVOLVE_BF16, &POOL, &ACT, &NOISE].map(|kernel| Arc::clone(kernel)).to_vec()
}

fn finish(builder: KernelBuilder, params: &[&'static str], bodies: &[&str], native: fn(&NativeCall<'_>)) -> Arc<Kernel> {
    let body: String = std::iter::once(layout::wgsl()).chain(bodies.iter().map(|body| (*body).to_owned())).collect();
    built_in(words(builder, params).body(body), native)
}

/// A float of the words that the host writes.
fn number(live: &[u32], at: usize) -> f32 {
    f32::from_bits(live[at])
}

/// (x − low)/(high − low), clamped to 0 to 1.
fn ramp(x: f32, low: f32, high: f32) -> f32 {
    ((x - low) / (high - low)).clamp(0.0, 1.0)
}
