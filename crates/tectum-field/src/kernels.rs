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

use tectum::{Element, Kernel, KernelBuilder, Prelude, TypedKernel, kernel_arguments};

use super::layout;
use super::storage::Storage;
use crate::kernel::built_in;

/// Device code of the draw, prepended to the kernels that use it.
const DRAW: &str = include_str!("../kernels/field_draw.wgsl");
/// Device code of the current pattern, prepended to the kernels that use it.
const OCTANT: &str = include_str!("../kernels/field_octant.wgsl");

kernel_arguments! {
    /// Products of the current pattern with all stored ones.
    pub struct Similarity { read descriptor: f32, read library: f32, read traits: f32, write products: f32; kept: usize, content: usize }

    /// The library's recall and storage.
    pub struct Recall {
        read live: u32, read descriptor: f32, read_write products: f32, read_write library: f32, read_write traits: f32, read_write memory: f32, write pull: f32;
        patterns: usize, content: usize, channels: usize
    }

    /// Prediction, error and modulation.
    pub struct Sense {
        read live: u32, read descriptor: f32, read_write memory: f32, write control: f32;
        sensors: usize, motors: usize, content: usize, channels: usize
    }

    /// The place of the imprint.
    pub struct Place { read sites: f32, read_write control: f32; sites_x: usize, sites_y: usize, sites_z: usize, content: usize, block: usize }

    /// One step of the field; `boundary` is the code of a [`Boundary`](tectum::Boundary).
    pub struct Evolve {
        read x: T, read live: u32, read control: f32, read tables: f32, read pull: f32, write y: T, write rows: f32, write pooled: f32;
        nx: usize, ny: usize, nz: usize, channels: usize, boundary: u32, block: usize, first: usize, planes: usize
    }

    /// Means of the sites.
    pub struct Pool { read pooled: f32, write sites: f32; nx: usize, ny: usize, nz: usize, content: usize, block: usize }

    /// Statistics, regions and motors.
    pub struct Act {
        read rows: f32, read live: u32, read control: f32, read site_means: f32, read_write memory: f32, write descriptor: f32, write report: f32;
        nx: usize, ny: usize, nz: usize, content: usize, channels: usize, block: usize, motors: usize
    }

    /// The draws alone.
    pub struct Noise { read live: u32, write noise: f32; first: u32, n: usize }
}

pub static SIMILARITY: LazyLock<TypedKernel<Similarity>> = LazyLock::new(|| {
    built_in(
        with_body(
            Similarity::define("field_similarity"),
            &[OCTANT, include_str!("../kernels/field_similarity.wgsl")],
        ),
        similarity::native,
    )
});

pub static RECALL: LazyLock<TypedKernel<Recall>> = LazyLock::new(|| {
    let builder = Recall::define("field_recall").prelude(Prelude::Tree);
    built_in(
        with_body(
            builder,
            &[OCTANT, include_str!("../kernels/field_recall.wgsl")],
        ),
        recall::native,
    )
});

pub static SENSE: LazyLock<TypedKernel<Sense>> = LazyLock::new(|| {
    let builder = Sense::define("field_sense").prelude(Prelude::Tree);
    built_in(
        with_body(builder, &[include_str!("../kernels/field_sense.wgsl")]),
        sense::native,
    )
});

pub static PLACE: LazyLock<TypedKernel<Place>> = LazyLock::new(|| {
    built_in(
        with_body(
            Place::define("field_place"),
            &[include_str!("../kernels/field_place.wgsl")],
        ),
        imprint_site::native,
    )
});

static EVOLVE: LazyLock<[TypedKernel<Evolve>; 2]> = LazyLock::new(|| {
    let (single, bf16) = (
        Evolve::define_on::<f32>("field_evolve").prelude(Prelude::Tree),
        Evolve::define("field_evolve_bf16").prelude(Prelude::Tree),
    );
    let body = include_str!("../kernels/field_evolve.wgsl");
    [
        built_in(
            with_body(
                single,
                &[DRAW, include_str!("../kernels/field_f32.wgsl"), body],
            ),
            evolve::native_f32,
        ),
        built_in(
            with_body(
                bf16,
                &[DRAW, include_str!("../kernels/field_bf16.wgsl"), body],
            ),
            evolve::native_bf16,
        ),
    ]
});

/// The step of a field in a storage format.
pub fn evolve(storage: Storage) -> &'static TypedKernel<Evolve> {
    &EVOLVE[usize::from(storage == Storage::Bf16)]
}

pub static POOL: LazyLock<TypedKernel<Pool>> = LazyLock::new(|| {
    built_in(
        with_body(
            Pool::define("field_pool"),
            &[include_str!("../kernels/field_pool.wgsl")],
        ),
        pool::native,
    )
});

pub static ACT: LazyLock<TypedKernel<Act>> = LazyLock::new(|| {
    let builder = Act::define("field_act").prelude(Prelude::Tree);
    built_in(
        with_body(builder, &[DRAW, include_str!("../kernels/field_act.wgsl")]),
        act::native,
    )
});

pub static NOISE: LazyLock<TypedKernel<Noise>> = LazyLock::new(|| {
    built_in(
        with_body(
            Noise::define("field_noise"),
            &[DRAW, include_str!("../kernels/field_noise.wgsl")],
        ),
        noise::native,
    )
});

/// The kernels of the field brain.
pub fn kernels() -> Vec<Arc<Kernel>> {
    let [single, bf16] = &*EVOLVE;
    let all: [&Arc<Kernel>; 9] = [
        &SIMILARITY,
        &RECALL,
        &SENSE,
        &PLACE,
        single,
        bf16,
        &POOL,
        &ACT,
        &NOISE,
    ];
    all.map(Arc::clone).to_vec()
}

fn with_body<A, T: Element>(builder: KernelBuilder<A, T>, bodies: &[&str]) -> KernelBuilder<A, T> {
    builder.body(layout::wgsl() + &bodies.concat())
}

/// A float of the words that the host writes.
fn number(live: &[u32], at: usize) -> f32 {
    f32::from_bits(live[at])
}

/// (x − low)/(high − low), clamped to 0 to 1.
fn ramp(x: f32, low: f32, high: f32) -> f32 {
    ((x - low) / (high - low)).clamp(0.0, 1.0)
}
