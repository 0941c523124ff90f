use std::pin::pin;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::task::Wake;
use std::time::Duration;

use super::*;
use crate::device::Device;
use crate::dtype::DType;
use crate::error::ErrorKind;
use crate::kernel::Kernel;
use crate::plan::PlanBuilder;
use crate::view::View;

/// Timeout of a test for what happens immediately if all is correct.
const MOST: Duration = Duration::from_secs(60);

/// Work that ends only when released, with the given result.
struct Gate(Receiver<Result<RunStats>>);

fn gate() -> (Sender<Result<RunStats>>, Gate) {
    let (open, gate) = channel();
    (open, Gate(gate))
}

impl Work for Gate {}

impl TwoPhaseRun for Gate {
    fn begin(&mut self) -> Result<()> {
        Ok(())
    }

    fn finish(&mut self) -> Result<RunStats> {
        // Without the hook's message: a dropped gate is part of a test.
        self.0
            .recv_timeout(MOST)
            .unwrap_or_else(|_| resume_unwind(Box::new("the gate was not opened")))
    }
}

fn devices(what: &str) -> Vec<Device> {
    let open = |id: &'static str| {
        Device::open_if_present(id)
            .expect("absent or usable")
            .or_else(|| {
                println!("skipped: no {id}: {what}");
                None
            })
    };
    ["cpu", "vulkan:0", "cuda:0"]
        .into_iter()
        .filter_map(open)
        .collect()
}

/// A plan that leaves −x in a state, and one that doubles what is in it.
fn writer_and_reader(device: &Device) -> Result<((Executable, View), (Executable, View))> {
    let mut plan = PlanBuilder::new("writer");
    let (x, left) = (
        plan.input("x", DType::F32, 1_000),
        plan.state("left", DType::F32, 1_000),
    );
    plan.unary("neg", x, left)?;
    let writer = plan.finish()?.compile(device)?;
    let mut plan = PlanBuilder::new("reader");
    let (seen, y) = (
        plan.state("seen", DType::F32, 1_000),
        plan.output("y", DType::F32, 1_000),
    );
    plan.binary("add", seen, seen, y)?;
    let reader = plan
        .finish()?
        .compile_with(device, &[(seen, &writer.state_buffer(left)?)])?;
    Ok(((writer, x), (reader, y)))
}

#[test]
fn an_event_orders_the_work_of_two_streams() {
    for device in devices("two streams and an event") {
        let ((mut writer, x), (mut reader, y)) = writer_and_reader(&device).expect("compiles");
        for round in 1..=5u8 {
            let [first, second] = [(); 2].map(|()| Stream::new().expect("a thread"));
            writer.input::<f32>(x).fill(f32::from(round));
            let (open, gate) = gate();
            let held = first.submit(gate);
            let written = first.submit(writer);
            let event = first.event();
            second.wait_for(&event);
            let read = second.submit(reader);
            // The gate is closed, so nothing after it can have happened.
            assert!(
                !held.is_done() && !written.is_done() && !event.is_signaled() && !read.is_done()
            );
            open.send(Ok(RunStats::default())).expect("the gate waits");
            let (ran, stats) = read.wait();
            assert!(event.is_signaled() && written.is_done(), "{device:?}");
            assert_eq!(
                (stats.expect("runs").launches, ran.output::<f32>(y)),
                (1, &[-2.0 * f32::from(round); 1_000][..]),
                "{device:?}, round {round}"
            );
            (writer, reader) = (written.wait().0, ran);
        }
    }
}

/// Everything is submitted before the gate opens, so the order in which the thread takes it is
/// known.
#[test]
fn a_run_is_begun_while_the_one_before_it_goes_on() {
    struct Noted(char, Sender<String>);
    impl Work for Noted {}
    impl TwoPhaseRun for Noted {
        fn begin(&mut self) -> Result<()> {
            self.1
                .send(format!("{} begins", self.0))
                .map_err(|_| Error::invalid("nobody listens"))
        }
        fn finish(&mut self) -> Result<RunStats> {
            self.1
                .send(format!("{} ends", self.0))
                .map_err(|_| Error::invalid("nobody listens"))?;
            Ok(RunStats::default())
        }
    }
    let (stream, (note, noted), (open, gate)) =
        (Stream::new().expect("a thread"), channel(), gate());
    stream.submit(gate);
    for name in ['a', 'b', 'c'] {
        stream.submit(Noted(name, note.clone()));
    }
    let event = stream.event();
    stream.submit(Noted('d', note));
    open.send(Ok(RunStats::default())).expect("the gate waits");
    event.wait();
    drop(stream);
    let order: Vec<String> = noted.iter().collect();
    assert_eq!(
        order,
        [
            "a begins", "b begins", "a ends", "c begins", "b ends", "c ends", "d begins", "d ends"
        ]
    );
}

static BEGAN: (Mutex<bool>, Condvar) = (Mutex::new(false), Condvar::new());
static GO_ON: (Mutex<bool>, Condvar) = (Mutex::new(false), Condvar::new());

fn raise(flag: &(Mutex<bool>, Condvar)) {
    *locked(&flag.0) = true;
    flag.1.notify_all();
}

fn is_raised(flag: &(Mutex<bool>, Condvar)) -> bool {
    let (raised, _) = flag
        .1
        .wait_timeout_while(locked(&flag.0), MOST, |raised| !*raised)
        .unwrap_or_else(PoisonError::into_inner);
    *raised
}

/// The kernel is in the middle of its run, and ends only after the host has continued.
#[test]
fn the_host_goes_on_while_the_cpu_runs() {
    let body = "@compute @workgroup_size(256)\nfn main(@builtin(global_invocation_id) id: vec3<u32>) { if id.x < params.n { y[id.x] = 1.0; } }";
    let kernel = Kernel::define("waits_for_the_host")
        .write("y", DType::F32)
        .param("n", DType::U32)
        .body(body)
        .native(|call| {
            raise(&BEGAN);
            let was_told = is_raised(&GO_ON);
            call.write::<f32>(0).fill(if was_told { 1.0 } else { -1.0 });
        });
    let mut plan = PlanBuilder::new("waits");
    let y = plan.output("y", DType::F32, 3);
    plan.launch_dynamic(&kernel.expect("well formed"), &[y], &[3], 1)
        .expect("fits");
    let run = plan
        .finish()
        .and_then(|plan| plan.compile(&Device::open("cpu")?))
        .expect("compiles");
    let stream = Stream::new().expect("a thread");
    let submission = stream.submit(run);
    assert!(is_raised(&BEGAN), "the run did not begin");
    assert!(!submission.is_done());
    raise(&GO_ON);
    let (run, stats) = submission.wait();
    assert_eq!(
        (run.output::<f32>(y), stats.expect("runs").launches),
        (&[1.0; 3][..], 1)
    );
}

#[test]
fn an_error_comes_to_its_own_submission_and_an_event_all_the_same() {
    let device = Device::open("cpu").expect("present");
    let ((writer, x), _) = writer_and_reader(&device).expect("compiles");
    let stream = Stream::new().expect("a thread");
    let (open, lost) = gate();
    open.send(Err(Error::device_lost("gone")))
        .expect("the gate is there");
    let (lost, mut writer) = (stream.submit(lost), writer);
    writer.input::<f32>(x).fill(1.0);
    let (run, event) = (stream.submit(writer), stream.event());
    event.wait();
    assert!(lost.is_done() && run.is_done());
    assert_eq!(
        lost.wait().1.expect_err("it was lost").kind(),
        ErrorKind::DeviceLost
    );
    run.wait().1.expect("runs");
}

#[test]
fn a_panic_is_that_of_the_one_who_waits_and_the_stream_goes_on() {
    let (stream, (closed, gate)) = (Stream::new().expect("a thread"), gate());
    drop(closed);
    let panics = stream.submit(gate);
    let (open, gate) = super::tests::gate();
    open.send(Ok(RunStats {
        launches: 7,
        ..RunStats::default()
    }))
    .expect("the gate is there");
    let next = stream.submit(gate);
    assert_eq!(next.wait().1.expect("runs").launches, 7);
    assert!(catch_unwind(AssertUnwindSafe(|| panics.wait())).is_err());
}

/// Submitted work is done, even after its owner drops the submission or the stream.
#[test]
fn a_stream_that_is_dropped_ends_what_it_has() {
    let (stream, (open, gate)) = (Stream::new().expect("a thread"), gate());
    let (held, event) = (stream.submit(gate), stream.event());
    assert!(!held.is_done());
    open.send(Ok(RunStats::default())).expect("the gate waits");
    drop(stream);
    assert!(held.is_done() && event.is_signaled());
    held.wait().1.expect("runs");
}

/// The waker of a task that waits on a thread; counts how often it was woken.
#[derive(Default)]
struct Alarm(Mutex<usize>, Condvar);

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        *locked(&self.0) += 1;
        self.1.notify_all();
    }
}

impl Alarm {
    /// Whether it was woken this often within the timeout.
    fn has_rung(&self, times: usize) -> bool {
        let (rung, _) = self
            .1
            .wait_timeout_while(locked(&self.0), MOST, |rung| *rung < times)
            .unwrap_or_else(PoisonError::into_inner);
        *rung == times
    }
}

fn poll<F: Future>(future: Pin<&mut F>, alarm: &Arc<Alarm>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(&alarm.clone().into()))
}

/// One thread polls and then opens the gate: the poll did not block it. The end of the run wakes
/// the task once, and nothing before it does.
#[test]
fn a_submission_that_is_awaited_blocks_no_thread_and_is_woken_once() {
    let (stream, (open, gate), alarm) = (
        Stream::new().expect("a thread"),
        gate(),
        Arc::new(Alarm::default()),
    );
    let mut future = pin!(stream.submit(gate).into_future());
    assert!(poll(future.as_mut(), &alarm).is_pending() && *locked(&alarm.0) == 0);
    open.send(Ok(RunStats {
        launches: 7,
        ..RunStats::default()
    }))
    .expect("the gate waits");
    assert!(alarm.has_rung(1));
    let Poll::Ready((_, stats)) = poll(future, &alarm) else {
        panic!("woken before its end")
    };
    assert_eq!(stats.expect("runs").launches, 7);
    drop(stream);
    assert_eq!((*locked(&alarm.0), Arc::strong_count(&alarm)), (1, 1));
}

#[test]
fn the_task_that_polled_last_is_woken() {
    let (stream, (open, gate)) = (Stream::new().expect("a thread"), gate());
    let [first, last] = [(); 2].map(|()| Arc::new(Alarm::default()));
    let mut future = pin!(stream.submit(gate).into_future());
    assert!(
        poll(future.as_mut(), &first).is_pending() && poll(future.as_mut(), &last).is_pending()
    );
    open.send(Ok(RunStats::default())).expect("the gate waits");
    assert!(last.has_rung(1) && *locked(&first.0) == 0);
    assert!(poll(future, &first).is_ready());
}

/// The run ends in its turn, and nothing holds the task that no longer waits.
#[test]
fn a_future_that_is_dropped_leaves_its_run_alone() {
    let (stream, (open, gate), alarm) = (
        Stream::new().expect("a thread"),
        gate(),
        Arc::new(Alarm::default()),
    );
    let mut future = Box::pin(stream.submit(gate).into_future());
    let event = stream.event();
    assert!(poll(future.as_mut(), &alarm).is_pending() && Arc::strong_count(&alarm) == 2);
    drop(future);
    assert!(Arc::strong_count(&alarm) == 1 && !event.is_signaled());
    open.send(Ok(RunStats::default())).expect("the gate waits");
    event.wait();
    assert_eq!(*locked(&alarm.0), 0);
}

#[test]
fn a_waker_that_panics_does_not_stop_the_stream() {
    struct Panics;
    impl Wake for Panics {
        fn wake(self: Arc<Self>) {
            // Without the hook's message: it is part of the test.
            resume_unwind(Box::new("woken"));
        }
    }
    let (stream, (open, gate)) = (Stream::new().expect("a thread"), gate());
    let mut future = pin!(stream.submit(gate).into_future());
    assert!(
        future
            .as_mut()
            .poll(&mut Context::from_waker(&Arc::new(Panics).into()))
            .is_pending()
    );
    open.send(Ok(RunStats::default())).expect("the gate waits");
    let (open, gate) = super::tests::gate();
    open.send(Ok(RunStats::default()))
        .expect("the gate is there");
    stream.submit(gate).wait().1.expect("runs");
    assert!(poll(future, &Arc::default()).is_ready());
}

/// An executor of another crate; runs of every device, an error and a panic.
#[test]
fn submissions_are_awaited_on_every_device() {
    for device in devices("awaited submissions") {
        let ((mut writer, x), (reader, y)) = writer_and_reader(&device).expect("compiles");
        writer.input::<f32>(x).fill(3.0);
        let stream = Stream::new().expect("a thread");
        let (reader, launches) = pollster::block_on(async {
            let (_, stats) = stream.submit(writer).await;
            stats.expect("runs");
            let (reader, stats) = stream.submit(reader).await;
            (reader, stats.expect("runs").launches)
        });
        assert_eq!(
            (reader.output::<f32>(y), launches),
            (&[-6.0; 1_000][..], 1),
            "{device:?}"
        );
    }
    let (stream, (open, lost)) = (Stream::new().expect("a thread"), gate());
    open.send(Err(Error::device_lost("gone")))
        .expect("the gate is there");
    let (_, stats) = pollster::block_on(stream.submit(lost).into_future());
    assert_eq!(
        stats.expect_err("it was lost").kind(),
        ErrorKind::DeviceLost
    );
    let (closed, gate) = super::tests::gate();
    drop(closed);
    let panics = stream.submit(gate);
    assert!(
        catch_unwind(AssertUnwindSafe(|| pollster::block_on(
            panics.into_future()
        )))
        .is_err()
    );
}
