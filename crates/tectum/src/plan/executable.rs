//! A plan compiled for a device.

use std::sync::Arc;

use super::{Identity, Plan, Recorded, Slot, SlotKind, View};
use crate::content_hash::ContentHash;
use crate::device::{Block, Compiled, Device, DeviceInfo, DeviceKind, Role};
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::host_memory;
use crate::kernel::Kernel;
use crate::launch::{
    CodeForm, CodeObject, Launch, LaunchList, LaunchTime, Region, RunStats, align,
};
use crate::shared_state::SharedState;

/// Where a slot lives once compiled.
#[derive(Debug, Clone, Copy)]
enum Home {
    /// At an offset of the upload block.
    Upload(usize),
    /// In a separate buffer or in one shared with other temporaries.
    Buffer(usize),
    /// Nowhere: the slot is empty or never used.
    None,
}

/// A compiled plan: fill the inputs, [`run`](Executable::run), read the outputs. Running neither
/// allocates nor compiles.
pub struct Executable {
    plan: Identity,
    name: String,
    device: Device,
    slots: Vec<Slot>,
    homes: Vec<Home>,
    downloads: Vec<Option<usize>>,
    blocks: Vec<Arc<Block>>,
    code: Vec<CodeObject>,
    /// The kernel or library routine of each launch.
    launched: Vec<String>,
    compiled: Box<dyn Compiled>,
    ran: bool,
    /// A run was begun and not finished: the device may read the inputs and write the outputs.
    in_flight: bool,
}

impl std::fmt::Debug for Executable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Executable({} on {:?})", self.name, self.device)
    }
}

impl Plan {
    /// Compiles for a device, with some states in memory that the caller shares with other
    /// executables: states of any element types, each with memory of the same type and length.
    ///
    /// # Errors
    /// As [`Plan::compile`]; `Invalid` if shared memory has another type, length or device, is
    /// bound twice, or is bound to something other than a whole state.
    pub fn compile_with(
        &self,
        device: &Device,
        shared: &[(View, &SharedState)],
    ) -> Result<Executable> {
        self.check_dtypes(device.info())?;
        self.check_bindings(device.info())?;
        self.check_workgroups(device.info())?;
        self.check_loops(device.info())?;
        self.check_shared(device, shared)?;
        let mut layout = Layout::new(self);
        let mut blocks = Vec::with_capacity(layout.list.buffer_bytes.len());
        for (buffer, &bytes) in layout.list.buffer_bytes.iter().enumerate() {
            let slot = layout.buffer_slots[buffer];
            let given = shared
                .iter()
                .find(|(view, _)| slot == Some(view.slot as usize));
            blocks.push(match given {
                Some((_, given)) => {
                    layout.list.shared.push(buffer);
                    given.block.clone()
                }
                None => {
                    let role = if layout.list.upload == Some(buffer) {
                        Role::Upload
                    } else {
                        Role::Device
                    };
                    let is_constant = slot
                        .is_some_and(|slot| matches!(self.slots[slot].kind, SlotKind::Constant(_)));
                    // A constant is written whole, and the upload is zeroed by the host.
                    if is_constant || role == Role::Upload {
                        device.pool().acquire(bytes, role)?
                    } else {
                        device.pool().acquire_zeroed(bytes, role)?
                    }
                }
            });
        }
        for (slot, home) in self.slots.iter().zip(&layout.homes) {
            let Home::Buffer(buffer) = *home else {
                continue;
            };
            if let SlotKind::Constant(data) = &slot.kind {
                device
                    .backend()
                    .write(blocks[buffer].allocation(), 0, data)?;
            }
        }
        // A state can be shared by `state_buffer`, so it is always locked.
        let states =
            layout.buffer_slots.iter().enumerate().filter(|(_, slot)| {
                slot.is_some_and(|slot| self.slots[slot].kind == SlotKind::State)
            });
        layout.list.shared = states.map(|(buffer, _)| buffer).collect();
        let mut compiled = device.backend().compile(&layout.list, blocks.clone())?;
        compiled.upload_mut().fill(0);
        let code = self.launched_code(&*compiled, device.info().kind == DeviceKind::Cpu);
        let bytes: usize = blocks.iter().map(|block| block.bytes()).sum();
        crate::log!(
            debug,
            plan = self.name,
            device = device.info().id,
            launches = self.launches.len(),
            bytes,
            "plan compiled"
        );
        Ok(Executable {
            plan: self.id,
            name: self.name.clone(),
            device: device.clone(),
            slots: self.slots.clone(),
            homes: layout.homes,
            downloads: layout.downloads,
            blocks,
            launched: code.iter().map(|code| code.kernel.clone()).collect(),
            code: each_once(code),
            compiled,
            ran: false,
            in_flight: false,
        })
    }

    /// Rejects kernels whose workgroups a device cannot run.
    fn check_workgroups(&self, device: &DeviceInfo) -> Result<()> {
        let limit = device.limits.max_workgroup_size;
        // On the CPU no workgroup runs.
        let too_large = |launch: &&Recorded| {
            device.kind != DeviceKind::Cpu && launch.kernel.workgroup() > limit
        };
        match self.launches.iter().find(too_large) {
            None => Ok(()),
            Some(launch) => Err(Error::unsupported(format!(
                "plan {}: kernel {} has workgroups of {} invocations; {} runs at most {limit}",
                self.name,
                launch.kernel.name(),
                launch.kernel.workgroup(),
                device.id
            ))),
        }
    }

    /// Rejects launches whose loops a device may end too early.
    fn check_loops(&self, device: &DeviceInfo) -> Result<()> {
        let Some(most) = device.limits.max_loop_iterations else {
            return Ok(());
        };
        for (index, launch) in self.launches.iter().enumerate() {
            let kernel = launch.kernel.name();
            let place = format!("plan {}: launch {index}, kernel {kernel}", self.name);
            let Some(turns) = launch.kernel.loops(&launch.params, launch.group_count()) else {
                if launch.kernel.is_trusted() || !launch.kernel.has_loops()? {
                    continue;
                }
                return Err(Error::unsupported(format!(
                    "{place}: the number of loop iterations is unbounded, and {} ends loops after {most} per invocation; KernelBuilder::loops states the maximum",
                    device.id
                )));
            };
            if turns > u64::from(most) {
                let id = &device.id;
                return Err(Error::unsupported(format!(
                    "{place}: up to {turns} loop iterations; {id} ends loops after {most} per invocation"
                )));
            }
        }
        Ok(())
    }

    /// Whether device code may use the element types of every launch.
    pub(super) fn check_dtypes(&self, info: &DeviceInfo) -> Result<()> {
        let lacking = self.kernels().flat_map(|kernel| {
            kernel
                .bindings()
                .iter()
                .map(move |binding| (kernel, binding.dtype))
        });
        match lacking
            .into_iter()
            .find(|(_, dtype)| !info.dtypes.contains(dtype))
        {
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

    /// Whether the device can bind every range that a launch names.
    fn check_bindings(&self, info: &DeviceInfo) -> Result<()> {
        let limit = info.limits.max_binding_bytes;
        for (index, launch) in self.launches.iter().enumerate() {
            if let Some(view) = launch
                .views
                .iter()
                .find(|view| (view.len * view.dtype.bytes()) as u64 > limit)
            {
                let (id, bytes, kernel) = (
                    &info.id,
                    view.len * view.dtype.bytes(),
                    launch.kernel.name(),
                );
                let (plan, slot) = (&self.name, &self.slots[view.slot as usize].name);
                return Err(Error::unsupported(format!(
                    "{id}: plan {plan}: launch {index}, kernel {kernel}: binds {bytes} bytes of {slot}; this device binds at most {limit}"
                )));
            }
        }
        Ok(())
    }

    fn check_shared(&self, device: &Device, shared: &[(View, &SharedState)]) -> Result<()> {
        for (index, (view, state)) in shared.iter().enumerate() {
            view.of(self.id)
                .map_err(|error| error.at(format_args!("plan {}: a shared state", self.name)))?;
            let slot = &self.slots[view.slot as usize];
            let same_device = std::ptr::eq(device.info(), state.device.info());
            if slot.kind != SlotKind::State
                || !slot.is_whole(*view)
                || (slot.len, slot.dtype) != (state.len, state.dtype)
                || !same_device
            {
                return Err(Error::invalid(format!(
                    "plan {}: slot {} ({} × {}) cannot live in {state:?}; a whole state of the same type, length and device is needed",
                    self.name,
                    slot.name,
                    slot.len,
                    slot.dtype.wgsl()
                )));
            }
            for (other, second) in &shared[..index] {
                let name = &self.slots[other.slot as usize].name;
                if Arc::ptr_eq(&state.block, &second.block) {
                    return Err(Error::invalid(format!(
                        "plan {}: states {name} and {} share one buffer; each needs its own",
                        self.name, slot.name
                    )));
                }
                if other.slot == view.slot {
                    return Err(Error::invalid(format!(
                        "plan {}: state {name} is bound to two buffers",
                        self.name
                    )));
                }
            }
        }
        Ok(())
    }

    /// Name, form and hash of the code of each launch: the kernel, or the library's routine that
    /// replaces it.
    fn launched_code(&self, compiled: &dyn Compiled, is_cpu: bool) -> Vec<CodeObject> {
        let code = |(launch, kernel): (usize, &Arc<Kernel>)| match compiled.routine(launch) {
            Some(routine) => CodeObject {
                kernel: routine.to_owned(),
                form: CodeForm::Library,
                hash: ContentHash::of(routine.as_bytes()),
            },
            None if is_cpu => CodeObject {
                kernel: kernel.name().to_owned(),
                form: CodeForm::Native,
                hash: kernel.native_hash(),
            },
            None => CodeObject {
                kernel: kernel.name().to_owned(),
                form: CodeForm::Device,
                hash: kernel.hash(),
            },
        };
        self.kernels().enumerate().map(code).collect()
    }
}

fn each_once(mut code: Vec<CodeObject>) -> Vec<CodeObject> {
    code.sort();
    code.dedup();
    code
}

/// The plan's slots with buffer numbers.
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
            list: LaunchList {
                name: plan.name.clone(),
                buffer_bytes,
                launches: Vec::new(),
                upload,
                downloads: Vec::new(),
                shared: Vec::new(),
            },
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
                let whole = View {
                    plan: plan.id,
                    slot: index as u32,
                    offset: 0,
                    len: slot.len,
                    dtype: slot.dtype,
                };
                let region = self.region(&whole);
                self.list.downloads.push(region);
            }
        }
        for launch in &plan.launches {
            let regions = launch.views.iter().map(|view| self.region(view)).collect();
            let (kernel, params) = (launch.kernel.clone(), launch.params.clone());
            self.list.launches.push(Launch {
                kernel,
                regions,
                params,
                groups: launch.groups,
            });
        }
    }

    fn region(&self, view: &View) -> Region {
        let (offset, bytes) = (
            view.offset * view.dtype.bytes(),
            view.len * view.dtype.bytes(),
        );
        match self.homes[view.slot as usize] {
            Home::Upload(start) => {
                let buffer = self
                    .list
                    .upload
                    .expect("invariant: an input has bytes, so there is an upload block");
                Region {
                    buffer,
                    offset: start + offset,
                    bytes,
                }
            }
            Home::Buffer(buffer) => Region {
                buffer,
                offset,
                bytes,
            },
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

    /// Every kernel or library routine that a run launches, without duplicates.
    pub fn code(&self) -> &[CodeObject] {
        &self.code
    }

    /// Every kernel or library routine that runs of some executables launch, without duplicates.
    pub fn code_of<'e>(executables: impl IntoIterator<Item = &'e Executable>) -> Vec<CodeObject> {
        each_once(
            executables
                .into_iter()
                .flat_map(|executable| executable.code.iter().cloned())
                .collect(),
        )
    }

    /// An input, to be filled before the next run; it keeps its contents until then.
    ///
    /// # Panics
    /// If the view is of another plan, not of an input or of another type: a mistake in the calling
    /// code.
    pub fn input<T: Element>(&mut self, view: View) -> &mut [T] {
        self.idle()
            .and_then(|()| self.slot_of(view, &SlotKind::Input, T::DTYPE))
            .unwrap_or_else(|error| panic!("{error}"));
        match self.homes[view.slot as usize] {
            Home::Upload(start) => {
                let bytes = &mut self.compiled.upload_mut()[start + view.offset * size_of::<T>()..]
                    [..view.len * size_of::<T>()];
                bytemuck::cast_slice_mut(bytes)
            }
            _ => &mut [],
        }
    }

    /// Executes the launches once and waits for the outputs.
    ///
    /// # Errors
    /// `DeviceLost` with the plan's name when the device fails; its states are lost then.
    pub fn run(&mut self) -> Result<RunStats> {
        self.idle()?;
        self.compiled.begin()?;
        self.in_flight = true;
        self.finish()
    }

    /// Refuses access to what a run in flight uses.
    fn idle(&self) -> Result<()> {
        if self.in_flight {
            Err(Error::invalid(format!(
                "plan {}: a run is in flight; finish it first",
                self.name
            )))
        } else {
            Ok(())
        }
    }

    /// Begins a run that continues concurrently with the caller; until it is finished, inputs,
    /// outputs and further runs are refused.
    #[doc(hidden)]
    pub fn begin(&mut self) -> Result<()> {
        self.idle()?;
        self.compiled.begin()?;
        self.in_flight = true;
        self.compiled.record_end()
    }

    /// Waits for the run that was begun.
    #[doc(hidden)]
    pub fn finish(&mut self) -> Result<RunStats> {
        if !std::mem::take(&mut self.in_flight) {
            return Err(Error::invalid(format!(
                "plan {}: no run was begun",
                self.name
            )));
        }
        let stats = self.compiled.finish()?;
        self.ran = true;
        Ok(stats)
    }

    /// Executes the launches once, each timed separately, with the inputs of the last run; states
    /// advance as in a run. Launches do not overlap here, so the sum is at least a run's device
    /// time.
    ///
    /// # Errors
    /// As [`Executable::run`].
    pub fn trace(&mut self) -> Result<Vec<LaunchTime>> {
        self.idle()?;
        let times = self.compiled.trace()?;
        Ok(self
            .launched
            .iter()
            .zip(times)
            .map(|(kernel, ns)| LaunchTime {
                kernel: kernel.clone(),
                ns,
            })
            .collect())
    }

    /// An output of the last run.
    ///
    /// # Panics
    /// If the view is of another plan, not of an output, of another type, or nothing has run: a
    /// mistake in the calling code.
    pub fn output<T: Element>(&self, view: View) -> &[T] {
        self.try_output(view)
            .unwrap_or_else(|error| panic!("{error}"))
    }

    /// As [`Executable::output`]; `Invalid` instead of a panic.
    #[doc(hidden)]
    pub fn try_output<T: Element>(&self, view: View) -> Result<&[T]> {
        self.idle()?;
        self.slot_of(view, &SlotKind::Output, T::DTYPE)?;
        if !self.ran {
            return Err(Error::invalid(format!(
                "plan {} has not run yet",
                self.name
            )));
        }
        Ok(self.downloads[view.slot as usize].map_or(&[], |index| {
            let bytes = &self.compiled.download(index)[view.offset * size_of::<T>()..]
                [..view.len * size_of::<T>()];
            bytemuck::cast_slice(bytes)
        }))
    }

    /// Copies a state to the host.
    ///
    /// # Errors
    /// `Invalid` if the view is of another plan, not of a state or of another type; `OutOfMemory`
    /// if the host lacks memory for the copy; whatever the device reports.
    pub fn read_state<T: Element>(&self, view: View) -> Result<Vec<T>> {
        let block = self.state_block(view, T::DTYPE)?;
        let mut data = host_memory::filled("a copy of a state", T::zeroed(), view.len)?;
        if let Some(block) = block {
            let offset = view.offset * size_of::<T>();
            self.device.backend().read(
                block.allocation(),
                offset,
                bytemuck::cast_slice_mut(&mut data),
            )?;
        }
        Ok(data)
    }

    /// Replaces a state.
    ///
    /// # Errors
    /// `Invalid` as [`Executable::read_state`], or if `data` has another length than the view;
    /// whatever the device reports.
    pub fn write_state<T: Element>(&mut self, view: View, data: &[T]) -> Result<()> {
        let block = self.state_block(view, T::DTYPE)?;
        if data.len() != view.len {
            let name = &self.slots[view.slot as usize].name;
            return Err(Error::invalid(format!(
                "plan {}: state {name} of {} elements written with {}",
                self.name,
                view.len,
                data.len()
            )));
        }
        match block {
            Some(block) => self.device.backend().write(
                block.allocation(),
                view.offset * size_of::<T>(),
                bytemuck::cast_slice(data),
            ),
            None => Ok(()),
        }
    }

    /// A state's memory, to be shared with other executables of the same device:
    /// [`Plan::compile_with`].
    ///
    /// # Errors
    /// `Invalid` if the view is of another plan or not of a state, if it is a part of the state or
    /// has another element type, or if the state is empty.
    pub fn state_buffer(&self, view: View) -> Result<SharedState> {
        let block = self.state_block(view, view.dtype)?;
        let slot = &self.slots[view.slot as usize];
        let (name, len, dtype) = (&slot.name, slot.len, slot.dtype);
        if !slot.is_whole(view) {
            return Err(Error::invalid(format!(
                "plan {}: state {name} ({len} × {}): a buffer is of a whole state of its type",
                self.name,
                dtype.wgsl()
            )));
        }
        let block = block
            .ok_or_else(|| Error::invalid(format!("plan {}: state {name} is empty", self.name)))?
            .clone();
        Ok(SharedState {
            device: self.device.clone(),
            block,
            len,
            dtype,
        })
    }

    fn state_block(&self, view: View, dtype: DType) -> Result<Option<&Arc<Block>>> {
        self.slot_of(view, &SlotKind::State, dtype)?;
        Ok(match self.homes[view.slot as usize] {
            Home::Buffer(buffer) => Some(&self.blocks[buffer]),
            _ => None,
        })
    }

    /// Rejects a view of another plan, kind of slot or element type. A view of this plan lies
    /// within its slot.
    fn slot_of(&self, view: View, kind: &SlotKind, dtype: DType) -> Result<()> {
        view.of(self.plan)
            .map_err(|error| error.at(format_args!("executable {}", self.name)))?;
        let slot = &self.slots[view.slot as usize];
        if slot.kind != *kind || view.dtype != dtype {
            let (name, is, asked) = (&slot.name, view.dtype.wgsl(), dtype.wgsl());
            return Err(Error::invalid(format!(
                "executable {}: slot {name} seen as {is} is no {} of {asked}",
                self.name,
                kind.word()
            )));
        }
        Ok(())
    }
}
