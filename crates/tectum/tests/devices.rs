//! Properties of devices, and which one `auto` selects.

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
        let played = ["llvmpipe", "swiftshader", "basic render"]
            .iter()
            .any(|renderer| name.contains(renderer));
        if played {
            assert!(
                info.software && info.kind == DeviceKind::Software,
                "{name} is software"
            );
        }
        if matches!(info.kind, DeviceKind::Discrete | DeviceKind::Integrated) {
            assert!(
                !info.software && (info.uuid.is_some() || info.pci.is_some()),
                "{name} can be distinguished from similar devices"
            );
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
        assert!(
            error.kind() == kind && error.to_string().contains(needle),
            "{id}: {error}"
        );
    }
}

#[test]
fn absent_devices_are_refused_with_the_reason_they_are_listed_with() {
    for absent in Device::absent() {
        let id = if absent.device.contains(':') {
            absent.device.clone()
        } else {
            format!("{}:0", absent.device)
        };
        let error = Device::open(&id).expect_err("absent");
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(
            error.to_string().contains(&absent.reason)
                && error.to_string().contains("present: cpu"),
            "{error}"
        );
    }
    if Device::list().iter().any(|info| info.api == Api::Cuda) {
        println!("skipped: a CUDA device is here: why there is none");
    } else {
        assert!(
            Device::absent()
                .iter()
                .any(|absent| absent.device.starts_with("cuda"))
        );
    }
}

#[test]
fn buffers_are_copied_between_every_pair_of_devices() -> Result<(), Error> {
    let devices = Device::list()
        .iter()
        .map(|info| Device::open(&info.id))
        .collect::<Result<Vec<_>, _>>()?;
    // More than one chunk of a copy through the host, and not a multiple of it.
    let data: Vec<u32> = (0..(3 << 20) + 5).collect();
    for from in &devices {
        let source = from.buffer_from(&data)?;
        for to in &devices {
            let target = to.buffer::<u32>(data.len())?;
            let path = source.copy_to(&target)?;
            let (cuda, same) = (
                from.info().api == Api::Cuda && to.info().api == Api::Cuda,
                from.info().id == to.info().id,
            );
            assert!(
                if cuda {
                    (path == CopyPath::Device) == same
                } else {
                    path == CopyPath::Host
                },
                "{from:?} {to:?} {path:?}"
            );
            let zeros = [from, to]
                .iter()
                .any(|device| device.info().api == Api::Null);
            assert!(
                target.read()?
                    == if zeros {
                        vec![0; data.len()]
                    } else {
                        data.clone()
                    },
                "{from:?} to {to:?}"
            );
            assert_eq!(
                source
                    .copy_to(&to.buffer(1)?)
                    .expect_err("too short")
                    .kind(),
                ErrorKind::Invalid
            );
        }
        assert_eq!(source.copy_to(&source.clone())?, CopyPath::Device);
    }
    Ok(())
}

#[test]
fn measured_rates_are_positive_and_the_cpu_has_no_transfers() -> Result<(), Error> {
    let measured = Device::open("cpu")?.measure()?;
    assert!(
        measured.copy_bytes_per_s > 0.0
            && measured.gemm_flop_per_s > 0.0
            && measured.launch_s > 0.0
    );
    assert_eq!(
        (measured.upload_bytes_per_s, measured.download_bytes_per_s),
        (None, None)
    );
    Ok(())
}

/// A mapping's callback may run on any thread that polls: concurrent runs, reads and writes must
/// not see it too early.
#[test]
fn executables_of_one_device_run_side_by_side() -> Result<(), Error> {
    for id in ["cpu", "vulkan:0", "cuda:0"] {
        let Some(device) = Device::open_if_present(id).expect("absent or usable") else {
            println!("skipped: {id} is absent: executables side by side");
            continue;
        };
        let device = &device;
        let work = move |thread: u32| -> Result<(), Error> {
            let mut plan = tectum::PlanBuilder::new("side by side");
            let (x, y) = (
                plan.input("x", tectum::DType::F32, 100),
                plan.output("y", tectum::DType::F32, 100),
            );
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
            let threads: Vec<_> = (0..4)
                .map(|thread| scope.spawn(move || work(thread)))
                .collect();
            threads
                .into_iter()
                .try_for_each(|thread| thread.join().expect("no panic"))
        })?;
    }
    Ok(())
}

/// Executables that negate one buffer of 1.5, long enough for launches to be split.
fn readers_of_one_buffer(
    device: &Device,
    count: usize,
) -> Result<Vec<(tectum::Executable, tectum::View)>, Error> {
    const LEN: usize = 1 << 19;
    let shared = device.buffer_from(&vec![1.5f32; LEN])?;
    let reader = |_| {
        let mut plan = tectum::PlanBuilder::new("reads a buffer");
        let (x, y) = (
            plan.state("x", tectum::DType::F32, LEN),
            plan.output("y", tectum::DType::F32, LEN),
        );
        plan.unary("neg", x, y)?;
        Ok((
            plan.finish()?
                .compile_with(device, &[(x, shared.as_state())])?,
            y,
        ))
    };
    (0..count).map(reader).collect()
}

/// Whether all finished, on any thread; a test that waits forever reports nothing.
fn await_all(
    ended: &std::sync::mpsc::Receiver<Result<(), Error>>,
    count: usize,
) -> Result<(), Error> {
    (0..count).try_for_each(|_| {
        ended
            .recv_timeout(std::time::Duration::from_secs(300))
            .expect("a run that never ends, or a thread that panicked")
    })
}

/// A waiting thread of a pool may receive another task; a task that needs a buffer held by that
/// thread would wait forever.
#[test]
fn runs_that_touch_one_buffer_and_share_their_launches_all_end() -> Result<(), Error> {
    let device = Device::open("cpu")?;
    for in_tasks in [false, true] {
        let (send, ended) = std::sync::mpsc::channel();
        for (mut run, y) in readers_of_one_buffer(&device, 6)? {
            let send = send.clone();
            let work = move || {
                let all = (0..200).try_for_each(|_| {
                    run.run()
                        .map(|_| assert!(run.output::<f32>(y).iter().all(|y| *y == -1.5)))
                });
                send.send(all).expect("awaited");
            };
            if in_tasks {
                rayon_core::spawn(work);
            } else {
                std::thread::spawn(work);
            }
        }
        await_all(&ended, 6)?;
    }
    Ok(())
}

/// Each adds 1 to every element of two rotating buffers: no update is lost, in threads and in
/// tasks.
#[test]
fn runs_that_write_one_buffer_take_turns() -> Result<(), Error> {
    const LEN: usize = 1 << 18;
    const RUNS: usize = 50;
    let device = Device::open("cpu")?;
    let [a, b] = [
        device.buffer_from(&vec![0.0f32; LEN])?,
        device.buffer_from(&vec![0.0f32; LEN])?,
    ];
    let (send, ended) = std::sync::mpsc::channel();
    for task in 0..6 {
        let mut plan = tectum::PlanBuilder::new("writes a buffer");
        let [x, y] = ["x", "y"].map(|name| plan.state(name, tectum::DType::F32, LEN));
        let one = plan.constant("one", &vec![1.0f32; LEN]);
        plan.binary("add", x, one, y)?;
        plan.copy(y, x)?;
        let mut run = plan
            .finish()?
            .compile_with(&device, &[(x, a.as_state()), (y, b.as_state())])?;
        let send = send.clone();
        let work = move || {
            send.send((0..RUNS).try_for_each(|_| run.run().map(|_| ())))
                .expect("awaited")
        };
        if task % 2 == 0 {
            rayon_core::spawn(work);
        } else {
            std::thread::spawn(work);
        }
    }
    await_all(&ended, 6)?;
    assert_eq!(a.read()?, vec![(6 * RUNS) as f32; LEN]);
    Ok(())
}

/// Current number of runs of the kernel below.
static INSIDE: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);

/// Gives 1 if another run of the kernel was concurrent, 0 if none came in a minute.
fn meet(call: &tectum::NativeCall<'_>) {
    use std::sync::atomic::Ordering::SeqCst;
    let start = std::time::Instant::now();
    INSIDE.fetch_add(1, SeqCst);
    while INSIDE.load(SeqCst) < 2 && start.elapsed().as_secs() < 60 {
        std::thread::yield_now();
    }
    call.write::<f32>(1)[0] = f32::from(INSIDE.load(SeqCst) >= 2);
}

/// Shared weights are read by all executables concurrently.
#[test]
fn runs_that_only_read_a_buffer_do_not_wait_for_each_other() -> Result<(), Error> {
    let device = Device::open("cpu")?;
    let shared = device.buffer_from(&[1.0f32; 64])?;
    let builder = tectum::kernel::Kernel::define("meet")
        .read("x", tectum::DType::F32)
        .write("y", tectum::DType::F32)
        .param("n", tectum::DType::U32);
    let kernel = builder
        .body("@compute @workgroup_size(1) fn main() { y[0] = x[0] * f32(params.n); }")
        .native(meet)?;
    let mut runs = Vec::new();
    for _ in 0..2 {
        let mut plan = tectum::PlanBuilder::new("meets another");
        let (x, y) = (
            plan.state("x", tectum::DType::F32, 64),
            plan.output("y", tectum::DType::F32, 1),
        );
        plan.launch_dynamic(&kernel, &[x, y], &[1], 1)?;
        runs.push((
            plan.finish()?
                .compile_with(&device, &[(x, shared.as_state())])?,
            y,
        ));
    }
    let met = std::thread::scope(|scope| {
        let one = |(mut run, y): (tectum::Executable, tectum::View)| {
            run.run().map(|_| run.output::<f32>(y)[0])
        };
        let threads: Vec<_> = runs
            .into_iter()
            .map(|run| scope.spawn(move || one(run)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("no panic"))
            .collect::<Result<Vec<_>, _>>()
    })?;
    assert_eq!(met, [1.0, 1.0]);
    Ok(())
}

/// The kernel writes how many threads its launch may use.
fn count_threads(call: &tectum::NativeCall<'_>) {
    call.write::<f32>(0)[0] = call.threads_for(1 << 30) as f32;
}

/// No other test uses these numbers: a pool that is busy leaves a run on its own thread.
#[test]
fn the_cpu_has_the_threads_that_it_was_opened_with() -> Result<(), Error> {
    let [five, again, seven] = [5, 5, 7].map(|threads| Device::cpu().threads(threads).open());
    let (five, again, seven) = (five?, again?, seven?);
    assert!(std::ptr::eq(five.info(), again.info()) && !std::ptr::eq(five.info(), seven.info()));
    let (plain, by_id) = (Device::cpu().open()?, Device::open("cpu")?);
    assert!(std::ptr::eq(plain.info(), by_id.info()));
    let builder = tectum::Kernel::define("counts_threads")
        .write("y", tectum::DType::F32)
        .param("n", tectum::DType::U32);
    let kernel = builder
        .body("@compute @workgroup_size(1) fn main() { y[0] = f32(params.n); }")
        .native(count_threads)?;
    for (device, threads) in [(&five, 5), (&seven, 7)] {
        let mut plan = tectum::PlanBuilder::new("counts threads");
        let y = plan.output("y", tectum::DType::F32, 1);
        plan.launch_dynamic(&kernel, &[y], &[1], 1)?;
        let mut run = plan.finish()?.compile(device)?;
        run.run()?;
        assert_eq!(run.output::<f32>(y), [threads as f32]);
        assert_eq!(device.info().preferences().threads, threads);
        assert_eq!(
            tectum::Session::new(device).receipt().device.compute_units,
            Some(threads)
        );
    }
    for threads in [0, 1025] {
        let error = Device::cpu()
            .threads(threads)
            .open()
            .expect_err("impossible");
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert_eq!(
            error.to_string(),
            format!("cpu: {threads} is no number of threads from 1 to 1024")
        );
    }
    Ok(())
}

/// Launches that are long enough to be shared.
#[test]
fn results_have_the_same_bits_with_any_number_of_threads() -> Result<(), Error> {
    const M: usize = 600;
    const K: usize = 300;
    const N: usize = 500;
    let results = |threads: usize| -> Result<Vec<Vec<u32>>, Error> {
        let mut plan = tectum::PlanBuilder::new("work for several threads");
        let [a, b] = [("a", M * K), ("b", K * N)]
            .map(|(name, len)| plan.input(name, tectum::DType::F32, len));
        let [product, parts, sums, all] = [
            ("product", M * N),
            ("parts", M * N),
            ("sums", M),
            ("all", 1),
        ]
        .map(|(name, len)| plan.output(name, tectum::DType::F32, len));
        plan.gemm(
            tectum::Matrix::new(a, M, K),
            tectum::Matrix::new(b, K, N),
            product,
            tectum::GemmEpilogue::default(),
        )?;
        plan.softmax(product, parts, M, N, 1.0)?;
        plan.sum(product, sums, M, N)?;
        plan.sum(parts, all, 1, M * N)?;
        let mut run = plan
            .finish()?
            .compile(&Device::cpu().threads(threads).open()?)?;
        for (view, step) in [(a, 0.37f32), (b, 0.11)] {
            run.input::<f32>(view)
                .iter_mut()
                .enumerate()
                .for_each(|(place, value)| *value = (place as f32 * step).sin());
        }
        // The threads share a run after one whose launches were worth sharing.
        run.run()?;
        run.run()?;
        Ok([product, parts, sums, all]
            .map(|view| {
                run.output::<f32>(view)
                    .iter()
                    .map(|value| value.to_bits())
                    .collect()
            })
            .to_vec())
    };
    let alone = results(1)?;
    for threads in [2, 3] {
        assert!(results(threads)? == alone, "{threads} threads");
    }
    Ok(())
}
