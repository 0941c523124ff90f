//! The state of a field between two cycles.

use tectum::{Error, Result};

use super::draw::{NOISE_UNIT, draw, key};
use super::layout::*;
use super::shape::{DYNAMICS, REGIONS, Shape};
use tectum::snapshot::{Array, Snapshot};

/// Initial confidence in the whole and in every sensor.
const INITIAL_CONFIDENCE: f32 = 0.5;
/// Initial error.
const INITIAL_ERROR: f32 = 0.3;

/// The whole state, on the host.
#[derive(Debug, Clone, PartialEq)]
pub struct State {
    /// Cycles done.
    pub cycle: u64,
    /// Seed of noise and waves.
    pub seed: u64,
    /// The field, [X, Y, Z, C].
    pub field: Vec<f32>,
    /// Statistics, modulation and sensors' history, in the order of the layout.
    pub memory: Vec<f32>,
    /// Mean content of the sites, [sites, content].
    pub sites: Vec<f32>,
    /// Mean content of the regions, [64, content].
    pub descriptor: Vec<f32>,
    /// The library's patterns, then its attractors, [patterns + 20, 8, content]; empty without a
    /// library.
    pub library: Vec<f32>,
    /// The traits of each, [patterns + 20, 4].
    pub traits: Vec<f32>,
}

impl State {
    /// The initial state of a seed: content and temporal channels 0.05 ± 0.2, dynamics near rest.
    pub fn new(shape: &Shape, seed: u64) -> Self {
        let key = key(seed, u64::MAX - 1);
        let dynamics = shape.channels() - DYNAMICS;
        let element = |index: usize| {
            let n = NOISE_UNIT * draw(index as u32, key) as f32;
            match index % shape.channels() {
                channel if channel < dynamics => 0.05 + 0.2 * n,
                channel => match (channel - dynamics) / 4 {
                    0 => 2.0 + 0.1 * n,
                    1 | 2 => 0.05 * n,
                    _ => 0.2 * n,
                },
            }
        };
        let mut memory = vec![0.0; MEMORY_WORDS];
        memory[MEMORY_CONFIDENCE] = INITIAL_CONFIDENCE;
        memory[MEMORY_ERROR] = INITIAL_ERROR;
        memory[MEMORY_TRUST..][..MAX_SENSORS].fill(INITIAL_CONFIDENCE);
        memory[MEMORY_TOP..][..TOP].fill(-1.0);
        [MEMORY_NEAREST, MEMORY_STORED, MEMORY_ATTRACTOR]
            .into_iter()
            .for_each(|at| memory[at] = -1.0);
        let field = (0..shape.elements()).map(element).collect();
        let mut state = Self {
            cycle: 0,
            seed,
            field,
            memory,
            sites: Vec::new(),
            descriptor: Vec::new(),
            library: Vec::new(),
            traits: Vec::new(),
        };
        state.recompute_means(shape);
        state
    }

    /// The same with an empty library of this capacity; 0 for no library.
    #[must_use]
    pub fn with_patterns(mut self, shape: &Shape, patterns: usize) -> Self {
        let [library, traits] = library_lengths(shape, patterns);
        (self.library, self.traits) = (vec![0.0; library], vec![0.0; traits]);
        self
    }

    /// Recomputes statistics and means from the field, after an external change.
    ///
    /// # Panics
    /// If the field has another shape: an error in the calling code.
    pub fn recompute_means(&mut self, shape: &Shape) {
        assert_eq!(
            self.field.len(),
            shape.elements(),
            "a field of another shape"
        );
        let content = shape.content();
        let contents = self
            .field
            .chunks_exact(shape.channels())
            .flat_map(|cell| cell[..content].iter().map(|v| f64::from(*v)));
        let (mut sum, mut size, mut square) = (0.0, 0.0, 0.0);
        for v in contents {
            (sum, size, square) = (sum + v, size + v.abs(), square + v * v);
        }
        let count = (shape.elements() / shape.channels() * content) as f64;
        self.memory[MEMORY_MEAN] = (sum / count) as f32;
        self.memory[MEMORY_SIZE] = (size / count) as f32;
        self.memory[MEMORY_VARIANCE] = (square / count - (sum / count).powi(2)) as f32;
        let field: Vec<f64> = self.field.iter().map(|v| f64::from(*v)).collect();
        self.sites = means(shape, &field, shape.sites())
            .into_iter()
            .map(|v| v as f32)
            .collect();
        self.descriptor = means(shape, &field, [4; 3])
            .into_iter()
            .map(|v| v as f32)
            .collect();
    }

    /// Rejects arrays whose lengths differ from those of a field with this shape and library
    /// capacity.
    pub(super) fn check(&self, shape: &Shape, patterns: usize) -> Result<()> {
        let [library, traits] = library_lengths(shape, patterns);
        let content = shape.content();
        let sites: usize = shape.sites().into_iter().product();
        let arrays = [
            ("field", &self.field, shape.elements()),
            ("memory", &self.memory, MEMORY_WORDS),
            ("sites", &self.sites, sites * content),
            ("descriptor", &self.descriptor, REGIONS * content),
            ("library", &self.library, library),
            ("traits", &self.traits, traits),
        ];
        match arrays
            .into_iter()
            .find(|(_, array, needed)| array.len() != *needed)
        {
            Some((name, array, needed)) => Err(Error::invalid(format!(
                "field: {} numbers of {name} given, {needed} needed",
                array.len()
            ))),
            None => Ok(()),
        }
    }

    /// The state as named arrays.
    pub fn to_snapshot(&self, shape: &Shape) -> Snapshot {
        let mut snapshot = Snapshot::default();
        let [x, y, z] = shape.cells().map(|size| size as u64);
        snapshot.insert("shape", Array::U64(vec![x, y, z, shape.channels() as u64]));
        snapshot.insert("cycle", Array::U64(vec![self.cycle, self.seed]));
        let arrays = [
            ("field", &self.field),
            ("memory", &self.memory),
            ("sites", &self.sites),
            ("descriptor", &self.descriptor),
        ];
        arrays
            .into_iter()
            .for_each(|(name, data)| snapshot.insert(name, Array::F32(data.clone())));
        if !self.library.is_empty() {
            snapshot.insert("library", Array::F32(self.library.clone()));
            snapshot.insert("traits", Array::F32(self.traits.clone()));
        }
        snapshot
    }

    /// Reads the state of a field with this shape and library capacity.
    ///
    /// # Errors
    /// `Data`, naming the array that is missing, has another shape, or is not finite.
    pub fn from_snapshot(shape: &Shape, patterns: usize, snapshot: &Snapshot) -> Result<Self> {
        let [x, y, z] = shape.cells().map(|size| size as u64);
        let told = snapshot.u64("shape", 4)?;
        if told != [x, y, z, shape.channels() as u64] {
            return Err(Error::data(format!(
                "snapshot: a field of {told:?}; this one is of {:?} cells and {} channels",
                shape.cells(),
                shape.channels()
            )));
        }
        let array = |name: &str, len: usize| {
            let data = snapshot.f32(name, len)?;
            match data.iter().position(|v| !v.is_finite()) {
                Some(at) => Err(Error::data(format!(
                    "snapshot: array {name} is not finite at {at}"
                ))),
                None => Ok(data.to_vec()),
            }
        };
        let counts = snapshot.u64("cycle", 2)?;
        let content = shape.content();
        let sites: usize = shape.sites().into_iter().product();
        let optional = |name: &str, len: usize| {
            if len == 0 {
                Ok(Vec::new())
            } else {
                array(name, len)
            }
        };
        let [library, traits] = library_lengths(shape, patterns);
        Ok(Self {
            cycle: counts[0],
            seed: counts[1],
            field: array("field", shape.elements())?,
            memory: array("memory", MEMORY_WORDS)?,
            sites: array("sites", sites * content)?,
            descriptor: array("descriptor", REGIONS * content)?,
            library: optional("library", library)?,
            traits: optional("traits", traits)?,
        })
    }
}

/// Lengths of a library's patterns and attractors, and of their traits; 0 without patterns.
pub(super) fn library_lengths(shape: &Shape, patterns: usize) -> [usize; 2] {
    let rows = if patterns == 0 {
        0
    } else {
        patterns + ATTRACTORS
    };
    [rows * OCTANTS * shape.content(), rows * TRAIT_WORDS]
}

/// Mean content of the field's equal parts, by the number of parts along each axis.
pub(super) fn means(shape: &Shape, field: &[f64], parts: [usize; 3]) -> Vec<f64> {
    let (cells, content) = (shape.cells(), shape.content());
    let size: [usize; 3] = std::array::from_fn(|axis| cells[axis] / parts[axis]);
    let mut means = vec![0.0; parts.iter().product::<usize>() * content];
    for (cell, values) in field.chunks_exact(shape.channels()).enumerate() {
        let place = [
            cell / (cells[1] * cells[2]),
            cell / cells[2] % cells[1],
            cell % cells[2],
        ];
        let part = (0..3).fold(0, |part, axis| {
            part * parts[axis] + place[axis] / size[axis]
        });
        for (mean, value) in means[part * content..][..content].iter_mut().zip(values) {
            *mean += value / size.iter().product::<usize>() as f64;
        }
    }
    means
}
