//! A plan compiled for a device.

use std::sync::Arc;

use super::{Plan, Slot, SlotKind, View};
use crate::device::{Compiled, Device, DeviceInfo};
use crate::dtype::Element;
use crate::error::{Error, Result};
use crate::kernel::{Kernel, fnv1a};
use crate::launch::{Launch, LaunchList, LaunchTime, Region, RunStats, align};
use crate::memory::{Block, Buffer, Role};

/// Where a slot lives once compiled.
#[derive(Debug, Clone, Copy)]
enum Home {
    /// At an offset of the upload block.
    Upload(usize),
    /// In a buffer of its own or shared with other temporaries.
    Buffer(usize),
    /// Nowhere: the slot is empty or never used.
    None,
}

/// A compiled plan: fill the inputs, [`run`](Executable::run), read the outputs. Running neither allocates nor compiles.
pub struct Executable {
    name: String,
    device: Device,
    slots: Vec<Slot>,
    homes: Vec<Home>,
    downloads: Vec<Option<usize>>,
    blocks: Vec<Arc<Block>>,
    code: Vec<(String, u64)>,
    /// The kernel or library routine of each launch.
    launched: Vec<String>,
    compiled: Box<dyn Compiled>,
    ran: bool,
}

impl std::fmt::Debug for Executable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Executable({} on {:?})", self.name, self.device)
    }
}

impl Plan {
    /// Compiles for a device with states of its own.
    ///
    /// # Errors
    /// `Unsupported` where the device cannot hold or run a launch, `OutOfMemory`, or what the driver reports.
    pub fn compile(&self, device: &Device) -> Result<Executable> {
        self.compile_with(device, &[])
    }

    /// Compiles for a device, with some states living in buffers that the caller shares with other executables.
    ///
    /// # Errors
    /// As [`Plan::compile`]; `Invalid` if a shared buffer is of another length or device, or is bound to something else
    /// than a state.
    pub fn compile_with(&self, device: &Device, shared: &[(View, &Buffer<f32>)]) -> Result<Executable> {
        self.check_dtypes(device.info())?;
        self.check_shared(device, shared)?;
        let mut layout = Layout::new(self);
        let mut blocks = Vec::with_capacity(layout.list.buffer_bytes.len());
        for (buffer, &bytes) in layout.list.buffer_bytes.iter().enumerate() {
            let slot = layout.buffer_slots[buffer];
            let given = shared.iter().find(|(view, _)| slot == Some(view.slot as usize));
            blocks.push(match given {
                Some((_, given)) => {
                    layout.list.shared.push(buffer);
                    given.block().clone()
                }
                None => {
                    let role = if layout.list.upload == Some(buffer) { Role::Upload } else { Role::Device };
                    device.pool().acquire(bytes, role)?
                }
            });
        }
        for (slot, home) in self.slots.iter().zip(&layout.homes) {
            let Home::Buffer(buffer) = *home else { continue };
            match &slot.kind {
                SlotKind::Constant(data) => device.backend().write(blocks[buffer].allocation(), 0, data)?,
                SlotKind::State if !layout.list.shared.contains(&buffer) => {
                    device.backend().write(blocks[buffer].allocation(), 0, &vec![0; slot.len * slot.dtype.bytes()])?;
                }
                _ => {}
            }
        }
        // A state can be handed out by `state_buffer`, so its turn is always taken.
        let states = layout.buffer_slots.iter().enumerate().filter(|(_, slot)| slot.is_some_and(|slot| self.slots[slot].kind == SlotKind::State));
        layout.list.shared = states.map(|(buffer, _)| buffer).collect();
        let compiled = device.backend().compile(&layout.list, blocks.clone())?;
        let code = self.launched_code(&*compiled);
        Ok(Executable {
            name: self.name.clone(),
            device: device.clone(),
            slots: self.slots.clone(),
            homes: layout.homes,
            downloads: layout.downloads,
            blocks,
            launched: code.iter().map(|(name, _)| name.clone()).collect(),
            code: each_once(code),
            compiled,
            ran: false,
        })
    }

    /// Whether device code may use the element types of every launch.
    pub(super) fn check_dtypes(&self, info: &DeviceInfo) -> Result<()> {
        let lacking = self.kernels().flat_map(|kernel| kernel.bindings().iter().map(move |binding| (kernel, binding.dtype)));
        match lacking.into_iter().find(|(_, dtype)| !info.dtypes.contains(dtype)) {
            None => Ok(()),
            Some((kernel, dtype)) => Err(Error::unsupported(format!(
                "plan {}: kernel {} needs {}, which device {} ({}) lacks; tectum devices lists what each has",
                self.name,
                kernel.name(),
                dtype.wgsl(),
                info.id,
                info.name
            ))),
        }
    }

    fn check_shared(&self, device: &Device, shared: &[(View, &Buffer<f32>)]) -> Result<()> {
        for (view, buffer) in shared {
            let slot = &self.slots[view.slot as usize];
            let same_device = std::ptr::eq(device.info(), buffer.device().info());
            if slot.kind != SlotKind::State || slot.len != buffer.len() || slot.dtype != f32::DTYPE || !same_device {
                return Err(Error::invalid(format!(
                    "plan {}: slot {} ({} × {}) cannot live in {buffer:?}; a state of the same length and device is needed",
                    self.name,
                    slot.name,
                    slot.len,
                    slot.dtype.wgsl()
                )));
            }
        }
        Ok(())
    }

    /// Name and content hash of the code of each launch: the kernel, or the library's routine that stands in for it.
    fn launched_code(&self, compiled: &dyn Compiled) -> Vec<(String, u64)> {
        let code = |(launch, kernel): (usize, &Arc<Kernel>)| match compiled.routine(launch) {
            Some(routine) => (routine.to_owned(), fnv1a(routine.as_bytes())),
            None => (kernel.name().to_owned(), kernel.hash()),
        };
        self.kernels().enumerate().map(code).collect()
    }
}

fn each_once(mut code: Vec<(String, u64)>) -> Vec<(String, u64)> {
    code.sort();
    code.dedup();
    code
}

/// The plan's slots numbered as buffers.
pub(super) struct Layout {
    pub(super) list: LaunchList,
    homes: Vec<Home>,
    downloads: Vec<Option<usize>>,
    /// The slot of each buffer that holds just one.
    buffer_slots: Vec<Option<usize>>,
}

impl Layout {
    pub(super) fn new(plan: &Plan) -> Self {
        let mut homes = vec![Home::None; plan.slots.len()];
        let mut buffer_bytes = Vec::new();
        let mut buffer_slots = Vec::new();
        let mut upload_bytes = 0;
        for (index, slot) in plan.slots.iter().enumerate() {
            let bytes = slot.len * slot.dtype.bytes();
            if bytes == 0 {
                continue;
            }
            match slot.kind {
                SlotKind::Input => {
                    homes[index] = Home::Upload(upload_bytes);
                    upload_bytes += align(bytes);
                }
                SlotKind::Temp => {}
                _ => {
                    homes[index] = Home::Buffer(buffer_bytes.len());
                    buffer_bytes.push(bytes);
                    buffer_slots.push(Some(index));
                }
            }
        }
        for &(slot, buffer) in &plan.memory.homes {
            homes[slot] = Home::Buffer(buffer_bytes.len() + buffer);
        }
        buffer_bytes.extend(&plan.memory.buffers);
        buffer_slots.resize(buffer_bytes.len(), None);
        let upload = (upload_bytes > 0).then_some(buffer_bytes.len());
        buffer_bytes.extend(upload.map(|_| upload_bytes));
        buffer_slots.resize(buffer_bytes.len(), None);
        let mut layout = Self {
            list: LaunchList { name: plan.name.clone(), buffer_bytes, launches: Vec::new(), upload, downloads: Vec::new(), shared: Vec::new() },
            homes,
            downloads: vec![None; plan.slots.len()],
            buffer_slots,
        };
        layout.place_launches(plan);
        layout
    }

    fn place_launches(&mut self, plan: &Plan) {
        for (index, slot) in plan.slots.iter().enumerate() {
            if slot.kind == SlotKind::Output && slot.len > 0 {
                self.downloads[index] = Some(self.list.downloads.len());
                let whole = View { slot: index as u32, offset: 0, len: slot.len, dtype: slot.dtype };
                let region = self.region(&whole);
                self.list.downloads.push(region);
            }
        }
        for launch in &plan.launches {
            let regions = launch.views.iter().map(|view| self.region(view)).collect();
            let (kernel, params) = (launch.kernel.clone(), launch.params.clone());
            self.list.launches.push(Launch { kernel, regions, params, groups: launch.groups });
        }
    }

    fn region(&self, view: &View) -> Region {
        let (offset, bytes) = (view.offset * view.dtype.bytes(), view.len * view.dtype.bytes());
        match self.homes[view.slot as usize] {
            Home::Upload(start) => {
                let buffer = self.list.upload.expect("invariant: an input has bytes, so there is an upload block");
                Region { buffer, offset: start + offset, bytes }
            }
            Home::Buffer(buffer) => Region { buffer, offset, bytes },
            Home::None => unreachable!("invariant: launches bind views that are not empty"),
        }
    }
}

impl Executable {
    /// The plan's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The device it runs on.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Name and content hash of every kernel or library routine that a run launches, each once.
    pub fn code(&self) -> &[(String, u64)] {
        &self.code
    }

    /// An input, to be filled before the next run; it keeps its contents until then.
    ///
    /// # Panics
    /// If the view is not of an input or of another type: a mistake in the calling code.
    pub fn input<T: Element>(&mut self, view: View) -> &mut [T] {
        let slot = &self.slots[view.slot as usize];
        assert!(slot.kind == SlotKind::Input && view.dtype == T::DTYPE, "slot {} is no {} input", slot.name, T::DTYPE.wgsl());
        match self.homes[view.slot as usize] {
            Home::Upload(start) => {
                let bytes = &mut self.compiled.upload_mut()[start + view.offset * size_of::<T>()..][..view.len * size_of::<T>()];
                bytemuck::cast_slice_mut(bytes)
            }
            _ => &mut [],
        }
    }

    /// Executes the launches once and waits for the outputs.
    ///
    /// # Errors
    /// `DeviceLost` with the plan's name when the device fails; its states are gone then.
    pub fn run(&mut self) -> Result<RunStats> {
        self.compiled.begin()?;
        self.finish()
    }

    /// Begins a run that goes on beside the caller; it must be finished before anything else is done with the executable.
    pub(crate) fn begin(&mut self) -> Result<()> {
        self.compiled.begin()?;
        self.compiled.mark()
    }

    /// Waits for the run that was begun.
    pub(crate) fn finish(&mut self) -> Result<RunStats> {
        let stats = self.compiled.finish()?;
        self.ran = true;
        Ok(stats)
    }

    /// Executes the launches once, each timed on its own, with the inputs of the last run; states move on as in a run.
    /// Launches that would overlap do not, so the sum is no less than a run's device time.
    ///
    /// # Errors
    /// As [`Executable::run`].
    pub fn trace(&mut self) -> Result<Vec<LaunchTime>> {
        let times = self.compiled.trace()?;
        Ok(self.launched.iter().zip(times).map(|(kernel, ns)| LaunchTime { kernel: kernel.clone(), ns }).collect())
    }

    /// An output of the last run.
    ///
    /// # Panics
    /// If the view is not of an output, of another type, or nothing has run: a mistake in the calling code.
    pub fn output<T: Element>(&self, view: View) -> &[T] {
        let slot = &self.slots[view.slot as usize];
        assert!(slot.kind == SlotKind::Output && view.dtype == T::DTYPE, "slot {} is no {} output", slot.name, T::DTYPE.wgsl());
        assert!(self.ran, "plan {} has not run yet", self.name);
        match self.downloads[view.slot as usize] {
            Some(index) => &bytemuck::cast_slice(self.compiled.download(index))[view.offset..][..view.len],
            None => &[],
        }
    }

    /// Copies a state to the host.
    ///
    /// # Errors
    /// Whatever the device reports.
    pub fn read_state<T: Element>(&self, view: View) -> Result<Vec<T>> {
        let mut data = vec![T::zeroed(); view.len];
        if let Some(block) = self.state_block::<T>(view) {
            let offset = view.offset * size_of::<T>();
            self.device.backend().read(block.allocation(), offset, bytemuck::cast_slice_mut(&mut data))?;
        }
        Ok(data)
    }

    /// Replaces a state.
    ///
    /// # Errors
    /// `Invalid` if `data` has another length than the view; whatever the device reports.
    pub fn write_state<T: Element>(&mut self, view: View, data: &[T]) -> Result<()> {
        if data.len() != view.len {
            let name = &self.slots[view.slot as usize].name;
            return Err(Error::invalid(format!("plan {}: state {name} of {} elements written with {}", self.name, view.len, data.len())));
        }
        match self.state_block::<T>(view) {
            Some(block) => self.device.backend().write(block.allocation(), view.offset * size_of::<T>(), bytemuck::cast_slice(data)),
            None => Ok(()),
        }
    }

    /// A state's memory as a buffer, to be shared with other executables of the same device.
    ///
    /// # Errors
    /// `Invalid` if the state is empty.
    pub fn state_buffer(&self, view: View) -> Result<Buffer<f32>> {
        let slot = &self.slots[view.slot as usize];
        let block = self.state_block::<f32>(view).ok_or_else(|| Error::invalid(format!("state {} is empty", slot.name)))?;
        Ok(Buffer::from_block(self.device.clone(), block.clone(), slot.len))
    }

    fn state_block<T: Element>(&self, view: View) -> Option<&Arc<Block>> {
        let slot = &self.slots[view.slot as usize];
        assert!(slot.kind == SlotKind::State && view.dtype == T::DTYPE, "slot {} is no {} state", slot.name, T::DTYPE.wgsl());
        match self.homes[view.slot as usize] {
            Home::Buffer(buffer) => Some(&self.blocks[buffer]),
            _ => None,
        }
    }
}
