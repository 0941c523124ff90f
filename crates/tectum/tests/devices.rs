//! What is said of devices, and which one `auto` takes.

use tectum::{Api, CopyPath, Device, DeviceKind, Error, ErrorKind};

#[test]
fn auto_never_takes_a_software_adapter() -> Result<(), Error> {
    assert!(!Device::open("auto")?.info().software);
    Ok(())
}

#[test]
fn every_listed_device_opens_and_says_of_itself_what_the_list_says() -> Result<(), Error> {
    let listed = Device::list();
    assert_eq!((listed[0].api, listed[1].api), (Api::Cpu, Api::Null));
    for info in &listed {
        let device = Device::open(&info.id)?;
        assert_eq!(device.info(), info);
        let name = info.name.to_lowercase();
        let played = ["llvmpipe", "swiftshader", "basic render"].iter().any(|renderer| name.contains(renderer));
        if played {
            assert!(info.software && info.kind == DeviceKind::Software, "{name} is software");
        }
        if matches!(info.kind, DeviceKind::Discrete | DeviceKind::Integrated) {
            assert!(!info.software && (info.uuid.is_some() || info.pci.is_some()), "{name} can be told from its like");
        }
    }
    if listed.iter().all(|info| info.api != Api::Vulkan) {
        println!("skipped: no Vulkan device: software adapters are marked");
    }
    Ok(())
}

#[test]
fn unknown_ids_are_refused_with_what_is_known() {
    for (id, kind, needle) in [
        ("", ErrorKind::Invalid, "vulkan:N"),
        ("gpu", ErrorKind::Invalid, "\"gpu\""),
        ("vulkan", ErrorKind::Invalid, "vulkan:N"),
        ("vulkan:x", ErrorKind::Invalid, "vulkan:x"),
        ("cuda", ErrorKind::Invalid, "cuda:N"),
        ("cuda:x", ErrorKind::Invalid, "cuda:x"),
        ("cuda:99", ErrorKind::Unsupported, "device cuda:99: "),
        ("vulkan:00", ErrorKind::Invalid, "vulkan:00"),
        ("vulkan:+0", ErrorKind::Invalid, "vulkan:+0"),
        ("vulkan:99", ErrorKind::Unsupported, "present: cpu, null"),
    ] {
        let error = Device::open(id).expect_err(id);
        assert!(error.kind() == kind && error.to_string().contains(needle), "{id}: {error}");
    }
}

#[test]
fn absent_devices_are_refused_with_the_reason_they_are_listed_with() {
    for absent in Device::absent() {
        let id = if absent.device.contains(':') { absent.device.clone() } else { format!("{}:0", absent.device) };
        let error = Device::open(&id).expect_err("absent");
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains(&absent.reason) && error.to_string().contains("present: cpu"), "{error}");
    }
    if Device::list().iter().any(|info| info.api == Api::Cuda) {
        println!("skipped: a CUDA device is here: why there is none");
    } else {
        assert!(Device::absent().iter().any(|absent| absent.device.starts_with("cuda")));
    }
}

#[test]
fn buffers_are_copied_between_every_pair_of_devices() -> Result<(), Error> {
    let devices = Device::list().iter().map(|info| Device::open(&info.id)).collect::<Result<Vec<_>, _>>()?;
    // More than one piece of a copy through the host, and no multiple of it.
    let data: Vec<u32> = (0..(3 << 20) + 5).collect();
    for from in &devices {
        let source = from.buffer_from(&data)?;
        for to in &devices {
            let target = to.buffer::<u32>(data.len())?;
            let path = source.copy_to(&target)?;
            let (cuda, same) = (from.info().api == Api::Cuda && to.info().api == Api::Cuda, from.info().id == to.info().id);
            assert!(if cuda { (path == CopyPath::Device) == same } else { path == CopyPath::Host }, "{from:?} {to:?} {path:?}");
            let zeros = [from, to].iter().any(|device| device.info().api == Api::Null);
            assert!(target.read()? == if zeros { vec![0; data.len()] } else { data.clone() }, "{from:?} to {to:?}");
            assert_eq!(source.copy_to(&to.buffer(1)?).expect_err("too short").kind(), ErrorKind::Invalid);
        }
        assert_eq!(source.copy_to(&source.clone())?, CopyPath::Device);
    }
    Ok(())
}

#[test]
fn measured_rates_are_positive_and_the_cpu_has_no_transfers() -> Result<(), Error> {
    let measured = Device::open("cpu")?.measure()?;
    assert!(measured.copy_bytes_per_s > 0.0 && measured.gemm_flop_per_s > 0.0 && measured.launch_s > 0.0);
    assert_eq!((measured.upload_bytes_per_s, measured.download_bytes_per_s), (None, None));
    Ok(())
}

/// A mapping's callback may run on any thread that polls: runs, reads and writes side by side must not see it too early.
#[test]
fn executables_of_one_device_run_side_by_side() -> Result<(), Error> {
    for id in ["cpu", "vulkan:0", "cuda:0"] {
        let Ok(device) = Device::open(id) else {
            println!("skipped: {id} is absent: executables side by side");
            continue;
        };
        let device = &device;
        let work = move |thread: u32| -> Result<(), Error> {
            let mut plan = tectum::PlanBuilder::new("side by side");
            let (x, y) = (plan.input("x", tectum::DType::F32, 100), plan.output("y", tectum::DType::F32, 100));
            plan.unary("neg", x, y)?;
            let mut run = plan.finish()?.compile(device)?;
            for round in 0..300 {
                let value = (thread * 1000 + round) as f32;
                run.input::<f32>(x).fill(value);
                run.run()?;
                assert_eq!(run.output::<f32>(y), [-value; 100]);
                let buffer = device.buffer_from(&[value; 64])?;
                assert_eq!(buffer.read()?, [value; 64]);
            }
            Ok(())
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|thread| scope.spawn(move || work(thread))).collect();
            threads.into_iter().try_for_each(|thread| thread.join().expect("no panic"))
        })?;
    }
    Ok(())
}

/// A thread of the pool that waits for others may be handed another run; one that needs a buffer which that thread holds would wait for ever.
#[test]
fn runs_that_touch_one_buffer_and_share_their_launches_all_end() -> Result<(), Error> {
    const LEN: usize = 1 << 19;
    let device = Device::open("cpu")?;
    let shared = device.buffer_from(&vec![1.5f32; LEN])?;
    let (send, ended) = std::sync::mpsc::channel();
    for _ in 0..4 {
        let mut plan = tectum::PlanBuilder::new("touches a buffer");
        let (x, y) = (plan.state("x", tectum::DType::F32, LEN), plan.output("y", tectum::DType::F32, LEN));
        plan.unary("neg", x, y)?;
        let mut run = plan.finish()?.compile_with(&device, &[(x, &shared)])?;
        let send = send.clone();
        std::thread::spawn(move || {
            let all = (0..300).try_for_each(|_| run.run().map(|_| assert!(run.output::<f32>(y).iter().all(|y| *y == -1.5))));
            send.send(all)
        });
    }
    for _ in 0..4 {
        ended.recv_timeout(std::time::Duration::from_secs(300)).expect("a run that never ends, or a thread that panicked")?;
    }
    Ok(())
}
