//! Weights on a device, and plans over them.

use tectum::operation::product::panel_format::PanelFormat;
use tectum::{DType, Device, Executable, PlanBuilder, Result, SharedState, View};
use tectum_graph::{Graph, Node, PackedParameter, ParameterLayout};

/// A model's executed graph with the weights that all its plans share.
#[derive(Debug)]
pub(super) struct DeviceWeights {
    /// The optimised graph; on the CPU with its weights in panels.
    ready: Graph,
    layout: ParameterLayout,
    device: Device,
    weights: Option<SharedState>,
    /// The weights until the first plan puts them on the device.
    flat: Vec<f32>,
    /// The number of compiled plans.
    compiled: usize,
}

/// The format of the products' weights: the given one, otherwise the file's where the device packs weights, and f32 elsewhere.
pub(super) fn weight_format<'a>(said: Option<PanelFormat>, device: &Device, file: impl Fn(&str) -> PanelFormat + 'a) -> impl Fn(&str) -> PanelFormat + 'a {
    let packed_weights = device.info().preferences().packed_weights;
    move |name| said.unwrap_or_else(|| if packed_weights { file(name) } else { PanelFormat::F32 })
}

impl DeviceWeights {
    /// The graph for a device, without its weights: enough to plan a run. Also returns the parameters that are in panels.
    pub fn prepare_graph(graph: &Graph, device: &Device, format: impl Fn(&str) -> PanelFormat) -> (DeviceWeights, Vec<PackedParameter>) {
        let optimized = graph.optimize();
        let is_packed = device.info().preferences().packed_weights || graph.parameters().any(|(name, ..)| format(name) != PanelFormat::F32);
        let (ready, packed) = if is_packed { optimized.pack_weights(format) } else { (optimized, Vec::new()) };
        let layout = ready.parameter_layout();
        (DeviceWeights { ready, layout, device: device.clone(), weights: None, flat: Vec::new(), compiled: 0 }, packed)
    }

    /// Reads all parameters of a graph: `format` gives the format of the products' weights, `read` writes one with a name and a shape.
    ///
    /// # Errors
    /// Errors of `read`.
    pub fn open(
        graph: &Graph,
        device: &Device,
        format: impl Fn(&str) -> PanelFormat,
        read: impl Fn(&str, &[usize], &mut [f32]) -> Result<()>,
    ) -> Result<DeviceWeights> {
        let (mut resident, packed) = DeviceWeights::prepare_graph(graph, device, format);
        let layout = &resident.layout;
        let mut flat = vec![0.0f32; layout.len()];
        let mut whole = Vec::new();
        for (entry, (name, node, shape)) in layout.entries().iter().zip(graph.parameters()) {
            let sizes = shape.sizes().expect("invariant: parameters have no letters");
            match packed.iter().find(|packed: &&PackedParameter| packed.node == node) {
                None => read(name, &sizes, &mut flat[entry.range()])?,
                Some(packed) => {
                    whole.resize(sizes.iter().product(), 0.0);
                    read(name, &sizes, &mut whole)?;
                    let panels = &mut flat[entry.range()];
                    match entry.dtype {
                        DType::F32 => packed.pack(&whole, panels),
                        _ => packed.pack(&whole, bytemuck::cast_slice_mut::<f32, u32>(panels)),
                    }
                }
            }
        }
        resident.flat = flat;
        Ok(resident)
    }

    /// The same model sharing the weights on the device; there are none before the first plan.
    pub fn share(&self) -> DeviceWeights {
        let (ready, layout, device) = (self.ready.clone(), self.layout.clone(), self.device.clone());
        DeviceWeights { ready, layout, device, weights: self.weights.clone(), flat: Vec::new(), compiled: 0 }
    }

    /// Binds letters of the graph.
    pub fn bind(&self, letters: &[(char, usize)]) -> Result<Graph> {
        self.ready.bind(letters)
    }

    /// Its device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Plans compiled so far.
    pub fn compiled(&self) -> usize {
        self.compiled
    }

    /// Bytes of the weights on the device.
    pub fn bytes(&self) -> usize {
        4 * self.layout.len()
    }

    /// Adds the weights to a plan; returns their state and the view that feeds each parameter.
    pub fn feeds(&self, plan: &mut PlanBuilder) -> Result<(View, Vec<(Node, View)>)> {
        let weights = plan.state("weights", DType::F32, self.layout.len());
        Ok((weights, self.layout.feeds(&self.ready, weights)?))
    }

    /// Compiles a plan whose `weights` state is the model's, with other states in existing buffers; the first plan
    /// puts the weights on the device. Also returns the bytes of its temporary values.
    pub fn compile(&mut self, plan: PlanBuilder, weights: View, others: &[(View, &SharedState)]) -> Result<(Executable, usize)> {
        let plan = plan.finish()?;
        let (bytes, _) = plan.temp_bytes();
        self.compiled += 1;
        if let Some(shared) = &self.weights {
            return Ok((plan.compile_with(&self.device, &[&[(weights, shared)], others].concat())?, bytes));
        }
        let mut run = plan.compile_with(&self.device, others)?;
        run.write_state(weights, &self.flat)?;
        self.weights = Some(run.state_buffer(weights)?);
        self.flat = Vec::new();
        Ok((run, bytes))
    }
}
