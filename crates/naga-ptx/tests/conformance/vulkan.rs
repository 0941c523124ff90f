//! Runs the table through wgpu on every adapter, software ones too: compares the expected values
//! with an implementation that shares no code with PTX.

use std::any::Any;
use std::panic::AssertUnwindSafe;

use crate::case::{BufferKind, Case, Difference, Features, Scope, Target};
use crate::report::{Outcome, Run};

/// Runs the cases on every adapter, or reports why there is none.
pub fn run(cases: &[&Case]) -> Result<Vec<Run>, String> {
    let instance = wgpu::Instance::new(wgpu::InstanceDescriptor {
        backends: wgpu::Backends::VULKAN | wgpu::Backends::METAL | wgpu::Backends::DX12,
        ..wgpu::InstanceDescriptor::new_without_display_handle()
    });
    let adapters = pollster::block_on(instance.enumerate_adapters(wgpu::Backends::all()));
    if adapters.is_empty() {
        return Err("no Vulkan, Metal or DX12 adapter".to_owned());
    }
    Ok(adapters
        .iter()
        .enumerate()
        .map(|(number, adapter)| run_adapter(number, adapter, cases))
        .collect())
}

fn run_adapter(number: usize, adapter: &wgpu::Adapter, cases: &[&Case]) -> Run {
    let info = adapter.get_info();
    let device = format!("{}:{number} {}", info.backend, info.name);
    let driver = format!("{} {}", info.driver, info.driver_info);
    // A panic within wgpu leaves its locks poisoned: later cases get their own device.
    let (mut outcomes, mut gpu) = (Vec::new(), None);
    for case in cases {
        let open = gpu.take().map_or_else(|| Gpu::open(adapter), Ok);
        let outcome = open.and_then(|gpu| {
            let outcome = std::panic::catch_unwind(AssertUnwindSafe(|| (gpu.outcome(case), gpu)));
            outcome.map_err(|panic| format!("panic: {}", panic_message(&*panic)))
        });
        let outcome = match outcome {
            Ok((outcome, open)) => {
                gpu = Some(open);
                outcome
            }
            Err(error) => Outcome::Failed(error),
        };
        outcomes.push((case.name.clone(), outcome));
    }
    Run {
        runner: "vulkan",
        device,
        driver,
        outcomes,
        note: None,
    }
}

fn panic_message(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("unknown")
}

struct Gpu {
    device: wgpu::Device,
    queue: wgpu::Queue,
    features: Features,
    /// The minimum and maximum number of invocations in a subgroup.
    subgroup: (u32, u32),
    shared_bytes: u32,
}

const FEATURES: &[(wgpu::Features, Features, &str)] = &[
    (wgpu::Features::SHADER_F16, Features::F16, "f16"),
    (wgpu::Features::SHADER_F64, Features::F64, "f64"),
    (
        wgpu::Features::SHADER_INT64,
        Features::INT64,
        "64-bit integers",
    ),
    (
        wgpu::Features::SHADER_I16,
        Features::INT16,
        "16-bit integers",
    ),
    (wgpu::Features::SUBGROUP, Features::SUBGROUP, "subgroups"),
    (
        wgpu::Features::SUBGROUP_BARRIER,
        Features::SUBGROUP_BARRIER,
        "subgroup barriers",
    ),
    (
        wgpu::Features::SHADER_INT64_ATOMIC_MIN_MAX,
        Features::INT64_ATOMIC_MIN_MAX,
        "64-bit atomic min and max",
    ),
    (
        wgpu::Features::SHADER_INT64_ATOMIC_ALL_OPS,
        Features::INT64_ATOMIC,
        "64-bit atomics",
    ),
    (
        wgpu::Features::SHADER_FLOAT32_ATOMIC,
        Features::F32_ATOMIC,
        "f32 atomics",
    ),
];

/// Minimum bytes of workgroup memory of a large case.
const LARGE_SHARED_BYTES: u32 = 96 << 10;

impl Gpu {
    fn open(adapter: &wgpu::Adapter) -> Result<Gpu, String> {
        let (info, limits) = (adapter.get_info(), adapter.limits());
        let mut wanted = wgpu::Features::empty();
        let mut features = Features::NONE;
        for &(feature, of_case, _) in FEATURES
            .iter()
            .filter(|(feature, ..)| adapter.features().contains(*feature))
        {
            wanted |= feature;
            features = features.and(of_case);
        }
        let request = adapter.request_device(&wgpu::DeviceDescriptor {
            label: Some("conformance"),
            required_features: wanted,
            required_limits: limits.clone(),
            experimental_features: wgpu::ExperimentalFeatures::disabled(),
            memory_hints: wgpu::MemoryHints::Performance,
            trace: wgpu::Trace::Off,
        });
        let (device, queue) = pollster::block_on(request).map_err(|error| error.to_string())?;
        let subgroup = (info.subgroup_min_size, info.subgroup_max_size);
        Ok(Gpu {
            device,
            queue,
            features,
            subgroup,
            shared_bytes: limits.max_compute_workgroup_storage_size,
        })
    }

    fn outcome(&self, case: &Case) -> Outcome {
        if let Some(reason) = self.lacks(case) {
            return Outcome::Skipped(reason);
        }
        match self.execute(case) {
            Err(error) => Outcome::Failed(error),
            Ok(contents) => match compare(case, self.subgroup.0 as usize, &contents) {
                Ok(()) => Outcome::Passed,
                Err(difference) => Outcome::Failed(difference.to_string()),
            },
        }
    }

    fn lacks(&self, case: &Case) -> Option<String> {
        if case.scope != Scope::Everywhere {
            return Some("determined for PTX alone".to_owned());
        }
        if case.features.contains(Features::SUBGROUP) && self.subgroup.0 != self.subgroup.1 {
            return Some("the size of subgroups varies".to_owned());
        }
        if case.features.contains(Features::LARGE_SHARED) && self.shared_bytes < LARGE_SHARED_BYTES
        {
            return Some(format!("workgroup memory of {} bytes", self.shared_bytes));
        }
        let lacking = FEATURES.iter().find(|(_, of_case, _)| {
            case.features.contains(*of_case) && !self.features.contains(*of_case)
        });
        lacking.map(|(.., name)| format!("without {name}"))
    }

    /// The contents of every buffer after the dispatch.
    fn execute(&self, case: &Case) -> Result<Vec<Vec<u8>>, String> {
        let validation = self.device.push_error_scope(wgpu::ErrorFilter::Validation);
        let internal = self.device.push_error_scope(wgpu::ErrorFilter::Internal);
        let contents = self.dispatch(case);
        let errors = [internal.pop(), validation.pop()].map(pollster::block_on);
        match errors.into_iter().flatten().next() {
            Some(error) => Err(error.to_string()),
            None => contents,
        }
    }

    fn dispatch(&self, case: &Case) -> Result<Vec<Vec<u8>>, String> {
        let buffers = case.buffers.iter().map(|buffer| {
            let usage = match buffer.kind {
                BufferKind::Uniform => wgpu::BufferUsages::UNIFORM,
                _ => wgpu::BufferUsages::STORAGE,
            };
            let usage = usage | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST;
            let size = buffer.bytes.len().next_multiple_of(4) as u64;
            let made = self.device.create_buffer(&wgpu::BufferDescriptor {
                label: None,
                size,
                usage,
                mapped_at_creation: false,
            });
            self.queue.write_buffer(&made, 0, &buffer.bytes);
            made
        });
        let buffers = buffers.collect::<Vec<_>>();
        let (pipeline, group) = self.pipeline(case, &buffers);
        let mut encoder = self
            .device
            .create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        {
            let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
            pass.set_pipeline(&pipeline);
            pass.set_bind_group(0, &group, &[]);
            let [x, y, z] = case.groups;
            pass.dispatch_workgroups(x, y, z);
        }
        let usage = wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::MAP_READ;
        let readback = buffers.iter().map(|buffer| {
            let size = buffer.size();
            let target = self.device.create_buffer(&wgpu::BufferDescriptor {
                label: None,
                size,
                usage,
                mapped_at_creation: false,
            });
            encoder.copy_buffer_to_buffer(buffer, 0, &target, 0, Some(size));
            target
        });
        let readback = readback.collect::<Vec<_>>();
        self.queue.submit([encoder.finish()]);
        readback
            .iter()
            .for_each(|buffer| buffer.map_async(wgpu::MapMode::Read, .., |_| ()));
        self.device
            .poll(wgpu::PollType::wait_indefinitely())
            .map_err(|error| error.to_string())?;
        let read = |buffer: &wgpu::Buffer| {
            buffer
                .get_mapped_range(..)
                .map(|view| view.to_vec())
                .map_err(|error| error.to_string())
        };
        readback.iter().map(read).collect()
    }

    fn pipeline(
        &self,
        case: &Case,
        buffers: &[wgpu::Buffer],
    ) -> (wgpu::ComputePipeline, wgpu::BindGroup) {
        let layouts =
            case.buffers
                .iter()
                .enumerate()
                .map(|(binding, buffer)| wgpu::BindGroupLayoutEntry {
                    binding: binding as u32,
                    visibility: wgpu::ShaderStages::COMPUTE,
                    ty: wgpu::BindingType::Buffer {
                        ty: match buffer.kind {
                            BufferKind::Uniform => wgpu::BufferBindingType::Uniform,
                            kind => wgpu::BufferBindingType::Storage {
                                read_only: kind == BufferKind::Read,
                            },
                        },
                        has_dynamic_offset: false,
                        min_binding_size: None,
                    },
                    count: None,
                });
        let entries = layouts.collect::<Vec<_>>();
        let layout = self
            .device
            .create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
                label: None,
                entries: &entries,
            });
        let pipeline_layout = self
            .device
            .create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
                label: None,
                bind_group_layouts: &[Some(&layout)],
                immediate_size: 0,
            });
        let source = wgpu::ShaderSource::Wgsl(case.source.as_str().into());
        let module = self
            .device
            .create_shader_module(wgpu::ShaderModuleDescriptor {
                label: Some(&case.name),
                source,
            });
        let pipeline = self
            .device
            .create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
                label: Some(&case.name),
                layout: Some(&pipeline_layout),
                module: &module,
                entry_point: Some("main"),
                compilation_options: wgpu::PipelineCompilationOptions {
                    constants: &case.constants,
                    ..Default::default()
                },
                cache: None,
            });
        let entries = buffers
            .iter()
            .enumerate()
            .map(|(binding, buffer)| wgpu::BindGroupEntry {
                binding: binding as u32,
                resource: buffer.as_entire_binding(),
            });
        let entries = entries.collect::<Vec<_>>();
        let group = self.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &layout,
            entries: &entries,
        });
        (pipeline, group)
    }
}

fn compare(case: &Case, subgroup_size: usize, contents: &[Vec<u8>]) -> Result<(), Difference> {
    case.outputs(subgroup_size)
        .iter()
        .try_for_each(|output| output.compare(Target::Wgpu, &contents[output.buffer]))
}
