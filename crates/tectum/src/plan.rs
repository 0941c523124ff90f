//! Plans: launches of kernels over named slots, recorded once, compiled for a device and run many
//! times.
//!
//! A slot is an input (written by the host before each run), an output (read after it), a state
//! (lives on the device from run to run), a constant, or a temporary whose memory the planner
//! shares by lifetime. [`PlanBuilder::launch`] records one launch; the methods in the files below
//! record whole operations. Every mistake is found while recording; a compiled plan only runs.
//! Operations on empty views record nothing: a size of zero never reaches a device.

mod executable;
mod memory_plan;
mod work;

use std::sync::Arc;

use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::kernel::arguments::{KernelArguments, RecordedArguments};
use crate::kernel::{Access, Groups, Kernel, TypedKernel};
use crate::launch::BINDING_ALIGNMENT;
use crate::view::{Identity, MAX_SLOT_BYTES, View};
pub use executable::Executable;
pub(crate) use memory_plan::{Lifetime, MemoryPlan, plan_memory};
pub use work::{LaunchWork, PlanWork};

/// Elements (of any type) in the alignment of a bound range: views that begin at a multiple of it
/// can be bound.
pub const ALIGNED_ELEMENTS: usize = BINDING_ALIGNMENT / 4;

#[derive(Debug, Clone, PartialEq)]
enum SlotKind {
    Input,
    Output,
    State,
    Constant(Vec<u8>),
    Temp,
}

impl SlotKind {
    fn word(&self) -> &'static str {
        match self {
            SlotKind::Input => "input",
            SlotKind::Output => "output",
            SlotKind::State => "state",
            SlotKind::Constant(_) => "constant",
            SlotKind::Temp => "temporary",
        }
    }
}

#[derive(Debug, Clone)]
struct Slot {
    name: String,
    kind: SlotKind,
    dtype: DType,
    len: usize,
}

impl Slot {
    /// Whether a view of this slot covers it, in its element type.
    fn is_whole(&self, view: View) -> bool {
        (view.offset, view.len, view.dtype) == (0, self.len, self.dtype)
    }

    /// Rejects a slot that is larger than any memory.
    fn check_size(&self) -> Result<()> {
        match self.len.checked_mul(self.dtype.bytes()) {
            Some(bytes) if bytes <= MAX_SLOT_BYTES => Ok(()),
            _ => Err(Error::invalid(format!(
                "slot {}: {} elements of {} are more than {MAX_SLOT_BYTES} bytes",
                self.name,
                self.len,
                self.dtype.wgsl()
            ))),
        }
    }
}

/// A recorded launch.
#[derive(Debug, Clone)]
struct Recorded {
    kernel: Arc<Kernel>,
    views: Vec<View>,
    params: Vec<u32>,
    /// Workgroups along x and y.
    groups: [u32; 2],
}

impl Recorded {
    /// All workgroups, which the recorder keeps within 32 bits.
    fn group_count(&self) -> u32 {
        self.groups[0] * self.groups[1]
    }
}

/// A plan under construction.
#[derive(Debug)]
pub struct PlanBuilder {
    id: Identity,
    name: String,
    slots: Vec<Slot>,
    launches: Vec<Recorded>,
}

/// A checked plan with its memory laid out; compile it for a device.
#[derive(Debug, Clone)]
pub struct Plan {
    id: Identity,
    name: String,
    slots: Vec<Slot>,
    launches: Vec<Recorded>,
    memory: MemoryPlan,
}

impl PlanBuilder {
    /// Starts a plan; the name appears in errors and receipts.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            id: Identity::next(),
            name: name.into(),
            slots: Vec::new(),
            launches: Vec::new(),
        }
    }

    fn slot(&mut self, name: impl Into<String>, kind: SlotKind, dtype: DType, len: usize) -> View {
        self.slots.push(Slot {
            name: name.into(),
            kind,
            dtype,
            len,
        });
        View {
            plan: self.id,
            slot: (self.slots.len() - 1) as u32,
            offset: 0,
            len,
            dtype,
        }
    }

    /// Adds an input of `len` elements, part of the one upload.
    pub fn input(&mut self, name: impl Into<String>, dtype: DType, len: usize) -> View {
        self.slot(name, SlotKind::Input, dtype, len)
    }

    /// Adds an output of `len` elements, part of the one download.
    pub fn output(&mut self, name: impl Into<String>, dtype: DType, len: usize) -> View {
        self.slot(name, SlotKind::Output, dtype, len)
    }

    /// Adds a state of `len` elements: zero at first, kept on the device from run to run.
    pub fn state(&mut self, name: impl Into<String>, dtype: DType, len: usize) -> View {
        self.slot(name, SlotKind::State, dtype, len)
    }

    /// Adds a constant, copied to the device when the plan is compiled.
    pub fn constant<T: Element>(&mut self, name: impl Into<String>, data: &[T]) -> View {
        self.slot(
            name,
            SlotKind::Constant(bytemuck::cast_slice(data).to_vec()),
            T::DTYPE,
            data.len(),
        )
    }

    /// Adds a temporary of `len` elements; its memory is reused after the last read.
    pub fn temp(&mut self, dtype: DType, len: usize) -> View {
        let name = format!("temp{}", self.slots.len());
        self.slot(name, SlotKind::Temp, dtype, len)
    }

    /// Records one launch, with a number of workgroups or with what
    /// [`groups_for`](crate::kernel::groups_for) items need.
    ///
    /// # Errors
    /// `Invalid`, naming the launch, if the views of optional bindings are not those that the
    /// kernel has, a parameter exceeds 32 bits or counts more elements than a view has
    /// ([`KernelBuilder::counts`](crate::KernelBuilder::counts)), the types of views do not fit the
    /// kernel, a view is empty, misaligned or of an input or constant that would be written, a
    /// temporary is read before anything wrote it, there are no workgroups or more than 65,535 that
    /// the kernel cannot take as rows ([`Prelude::LinearIndex`](crate::Prelude::LinearIndex)), or
    /// one slot is bound both read-only and written (or two written ranges overlap).
    ///
    /// # Example
    /// That of [`kernel_arguments!`](crate::kernel_arguments).
    pub fn launch<A: KernelArguments>(
        &mut self,
        kernel: &TypedKernel<A>,
        arguments: A,
        groups: impl Into<Groups>,
    ) -> Result<()> {
        let mut launch = RecordedArguments::default();
        arguments.record(&mut launch);
        let views = kernel
            .bound_views(launch.views)
            .map_err(|error| self.at_launch(kernel, error))?;
        // The view of too many elements, if there is one, explains a size that is too large.
        self.push_launch(kernel, views, launch.words, groups.into())?;
        let Some(name) = launch.oversized else {
            return Ok(());
        };
        self.launches.pop();
        Err(self.at_launch(
            kernel,
            Error::invalid(format!("parameter {name} exceeds 32 bits")),
        ))
    }

    /// Records one launch of a kernel whose arguments are known at run time only: a view for each
    /// binding, a word for each parameter.
    ///
    /// # Errors
    /// As [`PlanBuilder::launch`]; `Invalid` if the numbers of views and parameters are not those
    /// of the kernel, or for a trusted kernel
    /// ([`KernelBuilder::trusted`](crate::kernel::KernelBuilder::trusted)), which is recorded by
    /// the methods that compute its parameters.
    pub fn launch_dynamic(
        &mut self,
        kernel: &Arc<Kernel>,
        views: &[View],
        params: &[u32],
        groups: impl Into<Groups>,
    ) -> Result<()> {
        if kernel.is_trusted() {
            return Err(Error::invalid(format!(
                "plan {}: kernel {} does not check its indices; record it through its operation",
                self.name,
                kernel.name()
            )));
        }
        self.push_launch(kernel, views.to_vec(), params.to_vec(), groups.into())
    }

    /// As [`PlanBuilder::launch_dynamic`], also for a trusted kernel.
    ///
    /// # Safety
    /// With these parameters and numbers of workgroups each index of a trusted kernel is within the
    /// bound views, for any contents.
    ///
    /// # Errors
    /// As [`PlanBuilder::launch_dynamic`].
    pub unsafe fn launch_trusted(
        &mut self,
        kernel: &Arc<Kernel>,
        views: &[View],
        params: &[u32],
        groups: impl Into<Groups>,
    ) -> Result<()> {
        self.push_launch(kernel, views.to_vec(), params.to_vec(), groups.into())
    }

    fn push_launch(
        &mut self,
        kernel: &Arc<Kernel>,
        views: Vec<View>,
        params: Vec<u32>,
        groups: Groups,
    ) -> Result<()> {
        let groups = self
            .check(kernel, &views, &params)
            .and_then(|()| kernel.dispatch(groups))
            .map_err(|error| self.at_launch(kernel, error))?;
        self.launches.push(Recorded {
            kernel: kernel.clone(),
            views,
            params,
            groups,
        });
        Ok(())
    }

    fn at_launch(&self, kernel: &Kernel, error: Error) -> Error {
        error.at(format_args!(
            "plan {}: launch {}, kernel {}",
            self.name,
            self.launches.len(),
            kernel.name()
        ))
    }

    fn check(&self, kernel: &Kernel, views: &[View], params: &[u32]) -> Result<()> {
        let (bindings, needed) = (kernel.bindings(), kernel.params().len());
        if views.len() != bindings.len() || params.len() != needed {
            return Err(Error::invalid(format!(
                "{} views and {} params given, {} and {needed} needed",
                views.len(),
                params.len(),
                bindings.len()
            )));
        }
        for (view, binding) in views.iter().zip(bindings) {
            view.of(self.id)
                .map_err(|error| error.at(format_args!("binding {}", binding.name)))?;
            let slot = &self.slots[view.slot as usize];
            slot.check_size()?;
            let fault = if view.dtype != binding.dtype {
                format!(
                    "is {}, the kernel needs {}",
                    view.dtype.wgsl(),
                    binding.dtype.wgsl()
                )
            } else if view.is_empty() {
                "is empty".to_owned()
            } else if u32::try_from(view.len).is_err() {
                format!(
                    "has {} elements, more than the {} that a kernel counts",
                    view.len,
                    u32::MAX
                )
            } else if view.offset % ALIGNED_ELEMENTS != 0 {
                format!(
                    "begins at element {}, not a multiple of {ALIGNED_ELEMENTS}",
                    view.offset
                )
            } else if binding.access.writes()
                && matches!(slot.kind, SlotKind::Input | SlotKind::Constant(_))
            {
                "may not be written".to_owned()
            } else if binding.access != Access::Write && !self.is_written(view) {
                "is read before anything wrote it".to_owned()
            } else {
                continue;
            };
            return Err(Error::invalid(format!(
                "binding {}: slot {} {fault}",
                binding.name, slot.name
            )));
        }
        kernel.check_counts(views, params)?;
        self.check_aliases(kernel, views)
    }

    /// Whether an earlier launch, the host or the device's zeros wrote the slot of a view.
    /// Undefined for another plan's view, which `launch` rejects.
    #[doc(hidden)]
    pub fn is_written(&self, view: &View) -> bool {
        if view.of(self.id).is_err() {
            return true;
        }
        let writes = |launch: &Recorded| {
            let bound = launch.views.iter().zip(launch.kernel.bindings());
            bound
                .into_iter()
                .any(|(other, binding)| other.slot == view.slot && binding.access.writes())
        };
        !matches!(
            self.slots[view.slot as usize].kind,
            SlotKind::Temp | SlotKind::Output
        ) || self.launches.iter().rev().any(writes)
    }

    /// The bytes of a view of a constant.
    #[doc(hidden)]
    pub fn constant_bytes(&self, view: &View) -> Option<&[u8]> {
        view.of(self.id).ok()?;
        match &self.slots[view.slot as usize].kind {
            SlotKind::Constant(bytes) => bytes.get(view.bytes()),
            _ => None,
        }
    }

    /// Rejects views of this plan of which one is written and another shares its bytes, or its slot
    /// if only one is written.
    pub(crate) fn check_aliases(&self, kernel: &Kernel, views: &[View]) -> Result<()> {
        if views.iter().any(|view| view.of(self.id).is_err()) {
            return Ok(());
        }
        for (i, (a, a_binding)) in views.iter().zip(kernel.bindings()).enumerate() {
            for (b, b_binding) in views.iter().zip(kernel.bindings()).skip(i + 1) {
                let (a_writes, b_writes) = (a_binding.access.writes(), b_binding.access.writes());
                if a.shares_slot(b)
                    && (a_writes || b_writes)
                    && (a_writes != b_writes || a.overlaps(b))
                {
                    return Err(Error::invalid(format!(
                        "bindings {} and {} both touch slot {} and one writes it",
                        a_binding.name, b_binding.name, self.slots[a.slot as usize].name
                    )));
                }
            }
        }
        Ok(())
    }

    /// Records an operation of several launches: all of them, or none if one is rejected.
    #[doc(hidden)]
    pub fn whole<T>(&mut self, record: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let (slots, launches) = (self.slots.len(), self.launches.len());
        let result = record(self);
        if result.is_err() {
            self.slots.truncate(slots);
            self.launches.truncate(launches);
        }
        result
    }

    /// The number of launches so far.
    #[doc(hidden)]
    pub fn launch_count(&self) -> usize {
        self.launches.len()
    }

    /// Lays out the memory and seals the plan.
    ///
    /// # Errors
    /// `Invalid` if an output that is not empty is never written, or all slots together exceed the
    /// address range.
    pub fn finish(self) -> Result<Plan> {
        for (index, slot) in self.slots.iter().enumerate() {
            slot.check_size()
                .map_err(|error| error.at(format_args!("plan {}", self.name)))?;
            let view = View {
                plan: self.id,
                slot: index as u32,
                offset: 0,
                len: slot.len,
                dtype: slot.dtype,
            };
            if slot.kind == SlotKind::Output && slot.len > 0 && !self.is_written(&view) {
                return Err(Error::invalid(format!(
                    "plan {}: output {} is never written",
                    self.name, slot.name
                )));
            }
        }
        let total = self.slots.iter().try_fold(0usize, |total, slot| {
            total
                .checked_add(slot.len * slot.dtype.bytes())?
                .checked_next_multiple_of(BINDING_ALIGNMENT)
        });
        if total.is_none_or(|total| total > MAX_SLOT_BYTES) {
            return Err(Error::invalid(format!(
                "plan {}: its slots together are more than {MAX_SLOT_BYTES} bytes",
                self.name
            )));
        }
        let memory = plan_memory(&self.lifetimes());
        Ok(Plan {
            id: self.id,
            name: self.name,
            slots: self.slots,
            launches: self.launches,
            memory,
        })
    }

    /// First and last launch that access each temporary.
    fn lifetimes(&self) -> Vec<Lifetime> {
        let mut lifetimes: Vec<Option<Lifetime>> = vec![None; self.slots.len()];
        for (index, launch) in self.launches.iter().enumerate() {
            for view in &launch.views {
                let slot = &self.slots[view.slot as usize];
                if slot.kind == SlotKind::Temp {
                    let bytes = slot.len * slot.dtype.bytes();
                    let lifetime = lifetimes[view.slot as usize].get_or_insert(Lifetime {
                        slot: view.slot as usize,
                        bytes,
                        first: index,
                        last: index,
                    });
                    lifetime.last = index;
                }
            }
        }
        lifetimes.into_iter().flatten().collect()
    }
}

impl Plan {
    /// The plan's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The kernel of each launch, in order.
    pub fn kernels(&self) -> impl Iterator<Item = &Arc<Kernel>> {
        self.launches.iter().map(|launch| &launch.kernel)
    }

    /// Bytes of temporary memory after sharing, and before it.
    pub fn temp_bytes(&self) -> (usize, usize) {
        (self.memory.buffers.iter().sum(), self.memory.unshared_bytes)
    }

    /// One line for each launch: kernel, slots and sizes. The text is stable and used by tests.
    pub fn describe(&self) -> String {
        let line = |launch: &Recorded| {
            let views: Vec<_> = launch
                .views
                .iter()
                .map(|view| self.describe_view(view))
                .collect();
            let groups = match launch.groups {
                [columns, 1] => columns.to_string(),
                [columns, rows] => format!("{columns}x{rows}"),
            };
            format!(
                "{} {} groups {groups}\n",
                launch.kernel.name(),
                views.join(" ")
            )
        };
        self.launches.iter().map(line).collect()
    }

    fn describe_view(&self, view: &View) -> String {
        let slot = &self.slots[view.slot as usize];
        if view.bytes() == (0..slot.len * slot.dtype.bytes()) {
            format!("{}[{}]", slot.name, view.len)
        } else {
            format!("{}[{}..{}]", slot.name, view.offset, view.offset + view.len)
        }
    }
}

#[cfg(test)]
mod tests;
