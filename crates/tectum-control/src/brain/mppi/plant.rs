//! The rollout over a plant's own equations, for bodies whose descriptor gives them for devices.

use std::sync::{Arc, LazyLock};

use tectum::kernel::loops_over;
use tectum::{DType, Error, Kernel, Prelude, Result};

use crate::body::control::PlantModel;
use crate::body::{BODIES, Descriptor};
use crate::kernel::{built_in, floats, words};

/// The rollout kernels by the names of their bodies.
static KERNELS: LazyLock<Vec<(&str, Arc<Kernel>)>> =
    LazyLock::new(|| BODIES.into_iter().filter_map(|body| body.plant.as_ref().map(|plant| (body.name, define(body.name, plant)))).collect());

fn define(name: &str, plant: &PlantModel) -> Arc<Kernel> {
    let builder = Kernel::define(format!("mppi_plant_{name}")).prelude(Prelude::Math);
    let builder = builder.read("observation", DType::F32).read("handover", DType::F32).read_write("u", DType::F32).write("costs", DType::F32);
    let constants = ["terminal_multiplier", "energy_weight", "gain_position", "gain_speed", "low", "high"];
    let builder = floats(words(builder, &["samples", "horizon"]), &constants);
    let body = [plant.wgsl, include_str!("../../../kernels/mppi_plant.wgsl")].concat();
    let builder = builder.loops(|params, groups| loops_over(u64::from(params[0]), groups.saturating_mul(64), u64::from(params[1])));
    built_in(builder.body(body), plant.rollout)
}

/// The rollout kernels of all bodies that have equations for devices, with the bodies' names.
pub fn plant_kernels() -> &'static [(&'static str, Arc<Kernel>)] {
    &KERNELS
}

/// The rollout kernel of a body.
///
/// # Errors
/// `Unsupported` for a body without such equations, naming those that have them.
pub fn plant_kernel(body: &str) -> Result<&'static Arc<Kernel>> {
    let known = || Descriptor::names_with(|body| body.plant.is_some());
    let unknown = || Error::unsupported(format!("mppi has no equations of body {body} to roll out; known: {}", known()));
    KERNELS.iter().find(|(name, _)| *name == body).map(|(_, kernel)| kernel).ok_or_else(unknown)
}
