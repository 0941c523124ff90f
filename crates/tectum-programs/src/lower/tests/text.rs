//! Text in, text out: the WGSL of programs, and that every language accepts them.

use super::{Bounds, LaunchConfig, checked, lowered};

/// The body of `run` after the lane's variables, a line each.
fn code(text: &str, bounds: Bounds) -> Vec<String> {
    let lowered = lowered(text, LaunchConfig::linear(64, 32), bounds);
    let wgsl = lowered.kernel().wgsl();
    let (_, body) = wgsl.split_once("fn run(").expect("a run");
    let (body, _) = body.split_once("\n}\n").expect("its end");
    let lines = body.lines().skip(3).filter(|line| {
        !line.starts_with("    var ")
            && !line.contains("lane_number")
            && *line != "    faulted = false;"
    });
    lines.map(|line| line.trim_start().to_owned()).collect()
}

#[test]
fn straight_code_is_one_statement_an_instruction() {
    let text = "buffer x: f32 read\nbuffer y: f32 write\nmov_imm.f32 r0, 2.0\nldg.f32 r1, [x]\nfma.f32 r2, r0, r1, r1\nstg.f32 [y], r2";
    let expected = [
        "r0 = 0x40000000u;",
        "r1 = load_own32_b0(lane);",
        "r2 = fma_f32(r0, r1, r1);",
        "store_own32_b1(lane, r2);",
    ];
    assert_eq!(code(text, Bounds::Proven), expected);
}

#[test]
fn jumps_that_nest_are_structured() {
    let text = "buffer y: u32 write\nmov_imm.u32 r0, 3\nmov_imm.u32 r1, 0\n@again:\nadd.u32 r1, r1, r0\nset.lt.u32 p0, r1, r0\nbra @else, p0\n\
                sub.u32 r1, r1, r0\nbra @end\n@else:\nbra @out, p0\n@end:\nloop r0, @again\n@out:\nstg.u32 [y], r1";
    let expected = [
        "r0 = 0x3u;",
        "r1 = 0x0u;",
        "while more_2 && turns <= params.max_turns {",
        "r1 = r1 + r0;",
        "p0 = (r1 < r0);",
        "if !(p0) {",
        "r1 = r1 - r0;",
        "} else {",
        "if p0 { more_2 = false; continue; }",
        "}",
        "more_2 = r0 != 0u;",
        "r0 = r0 - u32(more_2);",
        "turns += u32(more_2);",
        "}",
        "if more_2 { stopped(turns, 8u); }",
        "if faulted { return; }",
        "store_own32_b0(lane, r1);",
    ];
    assert_eq!(code(text, Bounds::Proven), expected);
}

#[test]
fn other_jumps_go_through_a_loop_over_blocks() {
    let text = "buffer y: u32 write\nmov_imm.u32 r0, 3\ncall @f\nstg.u32 [y], r0\nexit\n@f:\nadd.u32 r0, r0, r0\nret";
    let lines = code(text, Bounds::Proven).join("\n");
    for needed in [
        "while pc < 3u {\nswitch pc {\ncase 0u: {\nr0 = 0x3u;\nreturns[depth] = 1u;\ndepth += 1u;\npc = 2u;\n}",
        "pc = returns[depth];",
    ] {
        assert!(lines.contains(needed), "{lines}");
    }
}

#[test]
fn what_is_proven_is_not_tested() {
    let text =
        "buffer x: u8 read_write\nmov_imm.u64 r1, 5\nldg.u8 r0, [x + r1]\nstg.u8 [x + 9], r0";
    let [proven, forced, tested] = [Bounds::Proven, Bounds::Forced, Bounds::Checked]
        .map(|bounds| lowered(text, LaunchConfig::default(), bounds));
    assert!(!proven.kernel().wgsl().contains("within"));
    assert!(forced.kernel().wgsl().contains("within") && !forced.kernel().wgsl().contains("fault"));
    assert!(
        tested
            .kernel()
            .wgsl()
            .contains("fault(1u, instruction, at, size);")
    );
    assert_eq!(
        (
            proven.kernel().bindings().len(),
            tested.kernel().bindings().len()
        ),
        (1, 2)
    );
}

#[test]
fn what_device_code_cannot_do_has_a_reason() {
    let buffers: String = (0..9)
        .map(|index| format!("buffer b_{index}: f32 read_write\n"))
        .collect();
    let cases = [
        (
            "buffer x: f64 read_write\nldg.f64 r0, [x]\nadd.f64 r0, r0, r0\nstg.f64 [x], r0",
            "add.f64",
        ),
        (&*buffers, "9 buffers"),
        ("buffer x: f32 read\nldg.f32 r0, [x]", "stores nowhere"),
        (
            "pool 20000\nbuffer x: f32 read_write\nldg.f32 r0, [x]",
            "20000 bytes",
        ),
    ];
    for (text, needle) in cases {
        let unsupported = checked(text)
            .lower(&LaunchConfig::default(), Bounds::Proven)
            .expect_err(needle);
        assert!(unsupported.reason.contains(needle), "{unsupported}");
    }
}

/// Programs of every family, in every language.
#[test]
fn lowered_programs_are_valid_in_every_language() {
    let texts = [
        "buffer x: u8 read_write\nldg.u8 r0, [x]\nadd.u8 r0, r0, r0\nstg.u8 [x], r0",
        "buffer x: i64 read_write\nldg.i64 r0, [x]\ndiv.i64 r0, r0, r0\ncvt.f32.i64 r1, r0\ncvt.i64.f32 r0, r1\nstg.i64 [x], r0",
        "buffer x: f16 read_write\nldg.f16 r0, [x]\nsub.f16 r0, r0, r0\nstg.f16 [x], r0",
        "buffer x: f32 read_write\nldg.f32 r0, [x]\ntan.f32 r0, r0\ngelu.f32 r0, r0\nlog10.f32 r0, r0\nrsqrt.f32 r0, r0\nstg.f32 [x], r0",
        "buffer x: f64 read_write\nldg.f64 r0, [x]\ncvt.f32.f64 r1, r0\nmax.f64 r0, r0, r0\nstg.f64 [x], r0",
        "shared 256\nbuffer x: u32 read_write\nmov.u32 r0, r252\nsts.u32 [shared], r0\nmov_imm.u32 r1, 2\n@again:\nbar.sync 0\nlds.u32 r0, [shared + 4]\nloop r1, @again\n\
         stg.u32 [x], r0",
        "shared 64\nbuffer x: u8 read_write\nmov_imm.u8 r0, 1\nsts.u8 [shared], r0\nbar.sync 1\nlds.u8 r0, [shared + 3]\nstg.u8 [x], r0",
        "pool 64\nbuffer x: u32 read_write\npool_alloc r1, 8\nmov_imm.u64 r2, 4\nmov_imm.u32 r3, 9\npool_store.u32 [r1 + r2], r3\npool_load.u32 r3, [r1 + r2]\n\
         pool_free r1\nstg.u32 [x], r3",
        "buffer x: u32 read_write\nbuffer y: u16 read_write\nmov_imm.u64 r1, 2\nmov_imm.u16 r2, 7\nstg.u16 [r1 + 2], r2\nldg.u16 r2, [r1 + r1]\n\
         cls_get r3\nnbr_get r3, r3, 2\nphase_adv 9\nphase_get r4\nadd.u32 r3, r3, r4\nstg.u32 [x], r3",
    ];
    for text in texts {
        for bounds in [Bounds::Checked, Bounds::Forced, Bounds::Proven] {
            let lowered = lowered(text, LaunchConfig::linear(64, 32), bounds);
            let kernel = lowered.kernel();
            kernel
                .translate()
                .unwrap_or_else(|error| panic!("{error}\n{}", kernel.wgsl()));
            let (module, info) = kernel.module().unwrap_or_else(|error| panic!("{error}"));
            let ptx = naga_ptx::translate(&module, &info, "main", &naga_ptx::Options::default());
            let ptx = ptx
                .unwrap_or_else(|error| panic!("{error}\n{}", kernel.wgsl()))
                .ptx;
            assemble(&ptx);
        }
    }
}

/// Assembles PTX where `NAGA_PTX_PTXAS` names the assembler.
fn assemble(ptx: &str) {
    let Some(ptxas) = std::env::var_os("NAGA_PTX_PTXAS") else {
        return println!("skipped: NAGA_PTX_PTXAS is not set: assembling a lowered program");
    };
    let directory = std::env::temp_dir();
    let file = directory.join(format!(
        "lowered-{}-{}.ptx",
        std::process::id(),
        tectum::ContentHash::of(ptx.as_bytes())
    ));
    std::fs::write(&file, ptx).expect("a temporary file");
    let run = std::process::Command::new(ptxas)
        .args(["-arch=sm_75", "-o"])
        .arg(file.with_extension("cubin"))
        .arg(&file)
        .output()
        .expect("the assembler runs");
    let _ = std::fs::remove_file(file.with_extension("cubin"));
    let _ = std::fs::remove_file(&file);
    assert!(
        run.status.success(),
        "{}\n{ptx}",
        String::from_utf8_lossy(&run.stderr)
    );
}
