//! First values of parameters.

use tectum::kernel::random::{normal, normal_table, philox, uniform};
use tectum::{Result, host_memory};

/// How the elements of a parameter are drawn, each independently.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Init {
    /// 0.
    Zeros,
    /// 1.
    Ones,
    /// A number.
    Constant(f32),
    /// Uniform in [low, high).
    Uniform {
        /// The minimum.
        low: f32,
        /// The bound of the values.
        high: f32,
    },
    /// Normal.
    Normal {
        /// The mean.
        mean: f32,
        /// The standard deviation.
        deviation: f32,
    },
    /// Uniform within ±√(6 / (inputs + outputs)) of the layer.
    ///
    /// # Source
    /// Glorot and Bengio, *Understanding the difficulty of training deep feedforward neural
    /// networks*, AISTATS 2010, equation 16.
    XavierUniform,
    /// Normal with mean 0 and standard deviation √(2 / inputs) of the layer.
    ///
    /// # Source
    /// He, Zhang, Ren and Sun, *Delving Deep into Rectifiers*, ICCV 2015, equation 10.
    KaimingNormal,
}

impl Init {
    /// `len` elements of the parameter at a position, for a layer of inputs and outputs.
    pub(super) fn values(
        self,
        [inputs, outputs]: [usize; 2],
        len: usize,
        seed: u64,
        position: u32,
    ) -> Result<Vec<f32>> {
        let words = |index: usize| {
            philox(
                [(index / 4) as u32, (index as u64 >> 34) as u32, position, 2],
                [seed as u32, (seed >> 32) as u32],
            )[index % 4]
        };
        let mut values = host_memory::with_capacity("the first values of a parameter", len)?;
        let table = normal_table();
        let number: &dyn Fn(usize) -> f32 = match self {
            Init::Zeros => &|_| 0.0,
            Init::Ones => &|_| 1.0,
            Init::Constant(value) => &move |_| value,
            Init::Uniform { low, high } => &move |index| low + (high - low) * uniform(words(index)),
            Init::Normal { mean, deviation } => {
                &move |index| mean + deviation * normal(words(index), table)
            }
            Init::XavierUniform => {
                let bound = (6.0 / (inputs + outputs) as f64).sqrt() as f32;
                &move |index| -bound + (bound + bound) * uniform(words(index))
            }
            Init::KaimingNormal => {
                let deviation = (2.0 / inputs as f64).sqrt() as f32;
                &move |index| 0.0 + deviation * normal(words(index), table)
            }
        };
        values.extend((0..len).map(number));
        Ok(values)
    }
}

/// Whether a pattern, in which `*` matches any characters, matches a whole name.
pub(super) fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((head, rest)) => name.strip_prefix(head).is_some_and(|tail| {
            let mut starts = tail
                .char_indices()
                .map(|(start, _)| start)
                .chain([tail.len()]);
            starts.any(|start| matches(rest, &tail[start..]))
        }),
    }
}
