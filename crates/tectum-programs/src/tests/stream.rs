use tectum::{Device, ErrorKind, Stream};

use crate::{BufferIndex, LaunchConfig, Program};

#[test]
fn wait_reports_an_error_and_the_stream_continues() {
    let text = "buffer x: u32 read\nbuffer y: u32 write\nldg.u32 r0, [x]\nmov_imm.u32 r1, 60\ndiv.u32 r0, r1, r0\nstg.u32 [y], r0";
    for id in ["cpu", "vulkan:0", "cuda:0"] {
        let Some(device) = Device::open_if_present(id).expect("absent or usable") else {
            println!("skipped: no {id}: an error in a stream");
            continue;
        };
        let bounded = Program::parse(text)
            .and_then(|program| {
                program
                    .check()?
                    .bound(&LaunchConfig::linear(3, 3), &[12, 12])
            })
            .expect("fits");
        let mut run = bounded
            .plan()
            .and_then(|plan| plan.compile(&device))
            .expect("compiles");
        let stream = Stream::new().expect("a thread");
        run.input(BufferIndex(0))
            .copy_from_slice(bytemuck::cast_slice(&[3u32, 0, 5]));
        let (mut run, stats) = stream.submit(run).wait();
        let error = stats.expect_err("divides by zero");
        assert!(
            error.kind() == ErrorKind::Invalid
                && error.to_string().contains("lane 1")
                && error.to_string().contains("division by zero"),
            "{error}"
        );
        run.input(BufferIndex(0))
            .copy_from_slice(bytemuck::cast_slice(&[3u32, 4, 5]));
        let (run, stats) = stream.submit(run).wait();
        stats.expect("runs");
        assert_eq!(
            bytemuck::pod_collect_to_vec::<u8, u32>(run.output(BufferIndex(1))),
            [20, 15, 12],
            "{device:?}"
        );
    }
}
