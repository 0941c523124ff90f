//! The rollout over a plant's own equations, for bodies whose descriptor gives them for devices.

use std::sync::LazyLock;

use tectum::kernel::arguments::NoBindings;
use tectum::kernel::loops_over;
use tectum::{Error, Prelude, Result, TypedKernel};

use crate::body::control::{PlantModel, PlantRollout};
use crate::body::{BODIES, Descriptor};

/// The rollout kernels by the names of their bodies.
static KERNELS: LazyLock<Vec<(&str, TypedKernel<PlantRollout>)>> = LazyLock::new(|| {
    BODIES
        .into_iter()
        .filter_map(|body| {
            body.plant
                .as_ref()
                .map(|plant| (body.name, define(body.name, plant)))
        })
        .collect()
});

fn define(name: &str, plant: &PlantModel) -> TypedKernel<PlantRollout> {
    let body = [plant.wgsl, include_str!("../../../kernels/mppi_plant.wgsl")].concat();
    let builder = PlantRollout::define(format!("mppi_plant_{name}"))
        .prelude(Prelude::Math)
        .body(body);
    let loops =
        |PlantRollout {
             samples, horizon, ..
         }: PlantRollout<NoBindings>,
         groups: u32| loops_over(samples as u64, groups.saturating_mul(64), horizon as u64);
    (plant.define)(builder.loops(loops))
}

/// The rollout kernels of all bodies that have equations for devices, with the bodies' names.
pub(crate) fn plant_kernels() -> &'static [(&'static str, TypedKernel<PlantRollout>)] {
    &KERNELS
}

/// The rollout kernel of a body.
///
/// # Errors
/// `Unsupported` for a body without such equations, naming those that have them.
pub(crate) fn plant_kernel(body: &str) -> Result<&'static TypedKernel<PlantRollout>> {
    let unknown = || {
        Error::unsupported(Descriptor::missing(
            "mppi has no equations to roll out of",
            body,
            |body| body.plant.is_some(),
        ))
    };
    KERNELS
        .iter()
        .find(|(name, _)| *name == body)
        .map(|(_, kernel)| kernel)
        .ok_or_else(unknown)
}
