//! Weights on a device, and plans over them.

use tectum::{
    Device, Executable, PlanBuilder, Result, SharedState, View, Watch, WorkProgress, host_memory,
};
use tectum_graph::{Graph, PackedParameter};

use super::prepared_graph::PreparedGraph;

/// A model's executed graph with the weights that all its plans share.
#[derive(Debug)]
pub(super) struct DeviceWeights {
    pub prepared: PreparedGraph,
    device: Device,
    weights: Option<SharedState>,
    /// The words of the weights until the first plan puts them on the device.
    flat: Vec<u32>,
    /// The number of compiled plans.
    compiled: usize,
}

impl DeviceWeights {
    /// No weights yet.
    pub fn new(prepared: PreparedGraph, device: &Device) -> DeviceWeights {
        DeviceWeights {
            prepared,
            device: device.clone(),
            weights: None,
            flat: Vec::new(),
            compiled: 0,
        }
    }

    /// Reads all parameters of the graph that was prepared: `read` writes one with a name and a
    /// shape. The watch sees the bytes that are ready.
    ///
    /// # Errors
    /// Errors of `read`; `Cancelled` if the watch breaks it off.
    pub fn read(
        &mut self,
        graph: &Graph,
        watch: &mut Watch<'_>,
        read: impl Fn(&str, &[usize], &mut [f32]) -> Result<()>,
    ) -> Result<()> {
        let PreparedGraph { layout, packed, .. } = &self.prepared;
        let mut flat = host_memory::filled("the weights of a model", 0, layout.len())?;
        let mut whole = Vec::new();
        let total = layout.entries().last().map_or(0, |entry| entry.range().end);
        for (entry, (name, node, shape)) in layout.entries().iter().zip(graph.parameters()) {
            let sizes = shape
                .sizes()
                .expect("invariant: parameters have no letters");
            match packed
                .iter()
                .find(|packed: &&PackedParameter| packed.node == node)
            {
                None => read(name, &sizes, entry.values(&mut flat))?,
                Some(packed) => {
                    let len = sizes.iter().product();
                    whole.clear();
                    host_memory::reserve(name, &mut whole, len)?;
                    whole.resize(len, 0.0);
                    read(name, &sizes, &mut whole)?;
                    packed.pack(&whole, &mut flat[entry.range()]);
                }
            }
            let [done, total] = [entry.range().end, total].map(|words| 4 * words as u64);
            WorkProgress {
                stage: "loading weights",
                done,
                total,
            }
            .report(watch)?;
        }
        self.flat = flat;
        Ok(())
    }

    /// The same model sharing the weights on the device; there are none before the first plan.
    pub fn share(&self) -> DeviceWeights {
        DeviceWeights {
            weights: self.weights.clone(),
            ..DeviceWeights::new(self.prepared.clone(), &self.device)
        }
    }

    /// Its device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Plans compiled so far.
    pub fn compiled(&self) -> usize {
        self.compiled
    }

    /// Compiles a plan whose `weights` state is the model's, with other states in existing memory;
    /// the first plan puts the weights on the device. Also returns the bytes of its temporary
    /// values.
    pub fn compile(
        &mut self,
        plan: PlanBuilder,
        weights: View,
        others: &[(View, &SharedState)],
    ) -> Result<(Executable, usize)> {
        let plan = plan.finish()?;
        let (bytes, _) = plan.temp_bytes();
        self.compiled += 1;
        if let Some(shared) = &self.weights {
            return Ok((
                plan.compile_with(&self.device, &[&[(weights, shared)], others].concat())?,
                bytes,
            ));
        }
        let mut run = plan.compile_with(&self.device, others)?;
        run.write_state(weights, &self.flat)?;
        self.weights = Some(run.state_buffer(weights)?);
        self.flat = Vec::new();
        Ok((run, bytes))
    }
}
