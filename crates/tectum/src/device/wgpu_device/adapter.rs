//! Finding adapters, naming them and opening one.

use std::sync::{Arc, LazyLock, Mutex};

use super::{Context, PIPELINE_CAP, UncapturedErrors, WgpuDevice};
use crate::device::{AbsentDevice, Api, DeviceInfo, DeviceKind, DeviceLimits};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::lru_cache::LruCache;

static INSTANCE: LazyLock<wgpu::Instance> = LazyLock::new(|| {
    wgpu::Instance::new(wgpu::InstanceDescriptor {
        backends: wgpu::Backends::VULKAN | wgpu::Backends::METAL | wgpu::Backends::DX12,
        ..wgpu::InstanceDescriptor::new_without_display_handle()
    })
});

/// Adapters in the driver's order, numbered within each API; drivers are queried once per process.
static ADAPTERS: LazyLock<Vec<(Api, usize, wgpu::Adapter)>> = LazyLock::new(adapters);

fn adapters() -> Vec<(Api, usize, wgpu::Adapter)> {
    let found = pollster::block_on(INSTANCE.enumerate_adapters(wgpu::Backends::all()));
    let mut numbered: Vec<(Api, usize, wgpu::Adapter)> = Vec::new();
    for adapter in found {
        let api = match adapter.get_info().backend {
            wgpu::Backend::Vulkan => Api::Vulkan,
            wgpu::Backend::Metal => Api::Metal,
            wgpu::Backend::Dx12 => Api::Dx12,
            _ => continue,
        };
        let number = numbered.iter().filter(|(other, ..)| *other == api).count();
        numbered.push((api, number, adapter));
    }
    numbered
}

/// The properties of every adapter.
pub(in crate::device) fn list() -> Vec<DeviceInfo> {
    ADAPTERS
        .iter()
        .map(|(api, number, adapter)| describe(*api, *number, adapter))
        .collect()
}

/// The API of this operating system if it has no adapter.
pub(in crate::device) fn absent() -> Option<AbsentDevice> {
    let (api, reason) = if cfg!(target_os = "macos") {
        (Api::Metal, "no GPU was found")
    } else if cfg!(windows) {
        (Api::Dx12, "no GPU was found; its driver may be missing")
    } else {
        (
            Api::Vulkan,
            "no driver was found: install that of the GPU, or a software one (on Debian and Ubuntu the package mesa-vulkan-drivers)",
        )
    };
    let is_absent = ADAPTERS.iter().all(|(present, ..)| *present != api);
    is_absent.then(|| AbsentDevice {
        device: api.name().to_owned(),
        reason: reason.to_owned(),
    })
}

/// Opens an adapter by API and number, if it exists.
pub(in crate::device) fn open(api: Api, number: usize) -> Result<Option<WgpuDevice>> {
    let found = ADAPTERS.iter().find(|(a, n, _)| (*a, *n) == (api, number));
    let Some((_, _, adapter)) = found else {
        return Ok(None);
    };
    let info = describe(api, number, adapter);
    let timestamps = adapter.features() & TIMESTAMPS;
    let mut features = wgpu::Features::empty();
    features |= timestamps;
    features.set(DOUBLE_FEATURES, info.dtypes.contains(&DType::F64));
    features.set(
        wgpu::Features::MAPPABLE_PRIMARY_BUFFERS,
        info.unified_memory,
    );
    let request = adapter.request_device(&wgpu::DeviceDescriptor {
        label: Some("tectum"),
        required_features: features,
        required_limits: adapter.limits(),
        experimental_features: wgpu::ExperimentalFeatures::disabled(),
        memory_hints: wgpu::MemoryHints::Performance,
        trace: wgpu::Trace::Off,
    });
    let (device, queue) = pollster::block_on(request).map_err(|error| {
        Error::unsupported(format!("{}: the device cannot be opened", info.id)).with_source(error)
    })?;
    let faults = Arc::new(UncapturedErrors::default());
    let (uncaptured, lost) = (faults.clone(), faults.clone());
    device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| {
        uncaptured.report(error.to_string())
    }));
    device.set_device_lost_callback(move |reason, message| {
        if reason != wgpu::DeviceLostReason::Destroyed {
            lost.report(format!("device lost ({reason:?}): {message}"));
        }
    });
    let context = Context {
        info,
        device,
        queue,
        faults,
        timestamps,
    };
    Ok(Some(WgpuDevice {
        context: Arc::new(context),
        pipelines: Mutex::new(LruCache::new(PIPELINE_CAP)),
    }))
}

/// Features required to time passes, and to time copies.
const TIMESTAMPS: wgpu::Features =
    wgpu::Features::TIMESTAMP_QUERY.union(wgpu::Features::TIMESTAMP_QUERY_INSIDE_ENCODERS);

/// Features required for f64: its arithmetic, and its bits as integers of the same width.
const DOUBLE_FEATURES: wgpu::Features =
    wgpu::Features::SHADER_F64.union(wgpu::Features::SHADER_INT64);

fn dtypes(features: wgpu::Features) -> Vec<DType> {
    let double = features.contains(DOUBLE_FEATURES).then_some(DType::F64);
    [DType::F32, DType::U32, DType::I32]
        .into_iter()
        .chain(double)
        .collect()
}

/// `LP_MAX_TGSI_LOOP_ITERATIONS` of Mesa's gallivm: one count for the loops of an invocation,
/// nested and one after another, and for the other invocations of its vector.
const LLVMPIPE_MAX_LOOP_ITERATIONS: u32 = 65_535;

fn is_llvmpipe(info: &wgpu::AdapterInfo) -> bool {
    info.driver == "llvmpipe" || info.name.starts_with("llvmpipe")
}

fn describe(api: Api, number: usize, adapter: &wgpu::Adapter) -> DeviceInfo {
    let info = adapter.get_info();
    let limits = adapter.limits();
    let kind = match info.device_type {
        wgpu::DeviceType::DiscreteGpu => DeviceKind::Discrete,
        wgpu::DeviceType::IntegratedGpu => DeviceKind::Integrated,
        wgpu::DeviceType::VirtualGpu => DeviceKind::Virtual,
        wgpu::DeviceType::Cpu => DeviceKind::Software,
        wgpu::DeviceType::Other => DeviceKind::Unknown,
    };
    let shares_memory = matches!(kind, DeviceKind::Integrated | DeviceKind::Software);
    let (uuid, memory_bytes) = identity(api, adapter);
    let pci = match (info.device_pci_bus_id.as_str(), kind) {
        ("", DeviceKind::Software) => None,
        ("", _) => Some(format!("{:04x}:{:04x}", info.vendor, info.device)),
        (address, _) => Some(address.to_owned()),
    };
    DeviceInfo {
        id: format!("{}:{number}", api.name()),
        name: info.name.clone(),
        uuid,
        pci,
        driver: format!("{} {}", info.driver, info.driver_info)
            .trim()
            .to_owned(),
        api,
        kind,
        software: kind == DeviceKind::Software,
        memory_bytes,
        compute_units: None,
        simd_width: (info.subgroup_min_size, info.subgroup_max_size),
        unified_memory: shares_memory
            && adapter
                .features()
                .contains(wgpu::Features::MAPPABLE_PRIMARY_BUFFERS),
        limits: DeviceLimits {
            max_binding_bytes: limits.max_storage_buffer_binding_size,
            max_buffer_bytes: limits.max_buffer_size,
            max_groups: limits.max_compute_workgroups_per_dimension,
            workgroup_memory_bytes: limits.max_compute_workgroup_storage_size,
            max_workgroup_size: limits.max_compute_invocations_per_workgroup,
            max_loop_iterations: is_llvmpipe(&info).then_some(LLVMPIPE_MAX_LOOP_ITERATIONS),
        },
        dtypes: dtypes(adapter.features()),
    }
}

/// UUID and memory of a Vulkan device, which wgpu does not pass on.
#[cfg(not(target_vendor = "apple"))]
fn identity(api: Api, adapter: &wgpu::Adapter) -> (Option<String>, Option<u64>) {
    use ash::vk;
    if api != Api::Vulkan {
        return (None, None);
    }
    // SAFETY: the guard keeps instance and physical device alive for this block, which only queries
    // properties with structures that Vulkan 1.1 defines and destroys nothing.
    unsafe {
        let Some(hal) = adapter.as_hal::<wgpu::hal::api::Vulkan>() else {
            return (None, None);
        };
        let (instance, device) = (
            hal.shared_instance().raw_instance(),
            hal.raw_physical_device(),
        );
        let mut id = vk::PhysicalDeviceIDProperties::default();
        let mut properties = vk::PhysicalDeviceProperties2::default().push_next(&mut id);
        instance.get_physical_device_properties2(device, &mut properties);
        let memory = instance.get_physical_device_memory_properties(device);
        let local = memory.memory_heaps[..memory.memory_heap_count as usize]
            .iter()
            .filter(|heap| heap.flags.contains(vk::MemoryHeapFlags::DEVICE_LOCAL))
            .map(|heap| heap.size)
            .max();
        (Some(crate::device::format_uuid(&id.device_uuid)), local)
    }
}

#[cfg(target_vendor = "apple")]
fn identity(_: Api, _: &wgpu::Adapter) -> (Option<String>, Option<u64>) {
    (None, None)
}
