//! Recording random numbers and the optimiser.

use super::{PlanBuilder, View};
use crate::error::{Error, Result};
use crate::kernel::optimizer::{self, AdamW};
use crate::kernel::sample::{self, KEY_WORDS, Random, RandomNormal};
use crate::kernel::{groups_for, random};

impl PlanBuilder {
    /// Records 32 random bits for each element; `key` is `[seed low, seed high, stream, tick]`.
    ///
    /// # Shapes
    /// `key` [4] u32, `y` [n] u32.
    /// # Errors
    /// `Invalid` if `key` does not have four words; as [`PlanBuilder::launch`].
    pub fn random_bits(&mut self, key: View, y: View) -> Result<()> {
        check_key(key)?;
        if y.is_empty() {
            return Ok(());
        }
        self.launch(&sample::BITS, Random { key, y, n: y.len() }, groups_for(y.len().div_ceil(4)))
    }

    /// Records uniform numbers in [0, 1), multiples of 2⁻²⁴.
    ///
    /// # Shapes
    /// `key` [4] u32, `y` [n] f32.
    /// # Errors
    /// As [`PlanBuilder::random_bits`].
    pub fn uniform(&mut self, key: View, y: View) -> Result<()> {
        check_key(key)?;
        if y.is_empty() {
            return Ok(());
        }
        self.launch(&sample::UNIFORM, Random { key, y, n: y.len() }, groups_for(y.len().div_ceil(4)))
    }

    /// Records standard normal numbers, multiples of 2⁻²⁰.
    ///
    /// # Shapes
    /// `key` [4] u32, `y` [n] f32.
    /// # Errors
    /// As [`PlanBuilder::random_bits`].
    pub fn normal(&mut self, key: View, y: View) -> Result<()> {
        check_key(key)?;
        if y.is_empty() {
            return Ok(());
        }
        self.whole(|plan| {
            let normal_table = plan.constant("normal_table", random::normal_table());
            plan.launch(&sample::NORMAL, RandomNormal { key, y, normal_table, n: y.len() }, groups_for(y.len().div_ceil(4)))
        })
    }

    /// Records one step of AdamW on the weights `w` with gradient `g` and moments `m` and `v`, all in place; `schedule` is
    /// `[learning rate, 1/(1−β₁ᵗ), 1/(1−β₂ᵗ), weight decay]`, with β₁ = `beta1` and β₂ = `beta2` and ε = 1e-8.
    ///
    /// # Shapes
    /// `g`, `w`, `m`, `v` [n] f32, `schedule` [4] f32.
    /// # Errors
    /// `Invalid` if lengths differ; as [`PlanBuilder::launch`].
    pub fn adamw(&mut self, schedule: View, g: View, weights: [View; 3], beta1: f32, beta2: f32) -> Result<()> {
        let [w, m, v] = weights;
        if [w.len(), m.len(), v.len()] != [g.len(); 3] || schedule.len() != optimizer::SCHEDULE_WORDS {
            return Err(Error::invalid(format!(
                "adamw: gradient {}, weights {}, moments {} and {}, schedule {} elements; n, n, n, n and 4 needed",
                g.len(),
                w.len(),
                m.len(),
                v.len(),
                schedule.len()
            )));
        }
        if g.is_empty() {
            return Ok(());
        }
        self.launch(&optimizer::ADAMW, AdamW { schedule, g, w, m, v, n: g.len(), beta1, beta2, epsilon: 1e-8 }, groups_for(g.len()))
    }
}

fn check_key(key: View) -> Result<()> {
    if key.len() == KEY_WORDS { Ok(()) } else { Err(Error::invalid(format!("random numbers: a key of {} words, {KEY_WORDS} needed", key.len()))) }
}
