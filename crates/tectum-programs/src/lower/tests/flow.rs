//! Divergence, calls, barriers, shared memory, pools and faults, on GPUs and on the CPU compared
//! with the reference.

use super::devices::{devices, run_on};
use super::{Bounds, LaunchConfig, checked};
use crate::{Fault, FaultKind, Outcome, Type};

/// A sum over a block by a tree: a loop with barriers, divergence between them.
const TREE: &str = "
shared 128
buffer x: u32 read
buffer y: u32 read_write
    ldg.u32 r0, [x]
    sts.u32 [shared], r0
    mov_imm.u32 r1, 16
    mov_imm.u32 r2, 4
    mov_imm.u32 r9, 1
@again:
    bar.sync 0
    set.ge.u32 p0, r252, r1
    bra @skip, p0
    add.u32 r3, r252, r1
    mul.u32 r3, r3, r2
    cvt.u64.u32 r4, r3
    lds.u32 r5, [shared + r4]
    lds.u32 r6, [shared]
    add.u32 r5, r5, r6
    sts.u32 [shared], r5
@skip:
    shr.u32 r1, r1, r9
    mov_imm.u32 r7, 0
    set.ne.u32 p1, r1, r7
    bra @again, p1
    bar.sync 1
    lds.u32 r8, [shared]
    lds.u32 r5, [shared + 0]
    add.u32 r8, r8, r5
    stg.u32 [y], r8";

/// Collatz steps: a loop whose count differs between lanes, with a call in it.
const COLLATZ: &str = "
buffer y: u16 read_write
    cvt.u32.u64 r0, r255
    mov_imm.u32 r1, 1
    add.u32 r0, r0, r1
    mov_imm.u32 r2, 0
    mov_imm.u32 r5, 0
@again:
    set.eq.u32 p0, r0, r1
    bra @done, p0
    call @step
    add.u32 r2, r2, r1
    bra @again
@done:
    cvt.u16.u32 r3, r2
    stg.u16 [y], r3
    exit
@step:
    and.u32 r4, r0, r1
    set.eq.u32 p1, r4, r5
    bra @even, p1
    mov_imm.u32 r4, 3
    mad.u32 r0, r0, r4, r1
    ret
@even:
    shr.u32 r0, r0, r1
    ret";

/// Allocations of a pool, neighbours, phases, accumulators and bytes through a handle.
const STATE: &str = "
pool 48
buffer y: u8 read_write
buffer z: u32 read_write
    pool_alloc r0, 12
    pool_alloc r1, 8
    mov_imm.u64 r2, 4
    mov_imm.u16 r3, 777
    pool_store.u16 [r1 + r2], r3
    pool_load.u64 r4, [r1 + r10]
    pool_free r1
    pool_alloc r5, 3
    xor.u64 r6, r5, r1
    cvt.u32.u64 r7, r4
    nbr_get r8, r252, 3
    nbr_count r9, r252
    add.u32 r7, r7, r8
    mad.u32 r7, r7, r9, r252
    mirror r8, r7
    xor.u32 r7, r7, r8
    phase_adv 700
    phase_adv 100
    phase_get r8
    add.u32 r7, r7, r8
    mov_imm.f32 r11, 0.5
    mov_imm.u32 r12, 97
    res_accum r12, r11
    unity_test p0, 0.25
    sel.u32 r7, p0, r7, r8
    stg.u32 [z], r7
    mov_imm.u64 r13, 1
    cvt.u8.u32 r14, r7
    stg.u8 [r13 + r255], r14";

#[test]
fn flow_agrees_with_the_reference() {
    let state = STATE.replace(
        "    pool_alloc r0, 12",
        "    mov_imm.u64 r10, 0\n    pool_alloc r0, 12",
    );
    let numbers: Vec<u8> = (0..96u32)
        .flat_map(|value| (value * value).to_le_bytes())
        .collect();
    let cases = [
        (
            TREE.to_owned(),
            LaunchConfig::linear(96, 32),
            vec![numbers.clone(), vec![0; 384]],
        ),
        (
            COLLATZ.to_owned(),
            LaunchConfig::linear(1001, 7),
            vec![vec![0; 2002]],
        ),
        (
            state,
            LaunchConfig::linear(96, 96),
            vec![vec![0; 99], vec![0; 384]],
        ),
    ];
    for (text, launch, buffers) in cases {
        let program = checked(&text);
        let mut expected = buffers.clone();
        assert_eq!(
            program
                .evaluate(&launch, &mut expected, u64::MAX)
                .expect("the launch fits"),
            Outcome::Finished,
            "{text}"
        );
        for device in devices("flow") {
            for bounds in [Bounds::Checked, Bounds::Forced, Bounds::Proven] {
                let (after, fault) = run_on(&device, &program, &launch, &buffers, bounds)
                    .unwrap_or_else(|error| panic!("{error}\n{text}"));
                assert_eq!(
                    (&after, fault),
                    (&expected, None),
                    "{device:?} {bounds:?}\n{text}"
                );
            }
        }
    }
}

#[test]
fn faults_name_lane_instruction_and_address() {
    let cases = [
        (
            "buffer x: u32 read_write\nldg.u32 r0, [x + 16]\nstg.u32 [x], r0",
            4,
            FaultKind::OutOfBounds {
                address: 16,
                ty: Type::U32,
                size: 16,
            },
            0,
        ),
        (
            "buffer x: u32 read_write\nmov_imm.u64 r1, 6\nstg.u32 [x + r1], r252",
            4,
            FaultKind::Misaligned {
                address: 6,
                ty: Type::U32,
            },
            1,
        ),
        (
            "buffer x: u8 read_write\nmov_imm.u64 r1, 0x123456789a\nldg.u8 r1, [r1 + 0]\nstg.u8 [x + 0], r1",
            4,
            FaultKind::UnknownHandle {
                handle: 0x12_3456_789a,
            },
            1,
        ),
        (
            "buffer x: u8 write\nmov_imm.u64 r1, 1\nldg.u8 r1, [r1 + 0]\nstg.u8 [x + 0], r1",
            4,
            FaultKind::Denied { handle: 1 },
            1,
        ),
        (
            "buffer x: i16 read_write\nldg.i16 r1, [x]\ndiv.i16 r1, r1, r1\nstg.i16 [x], r1",
            8,
            FaultKind::DivisionByZero,
            1,
        ),
        (
            "buffer x: i64 read_write\nldg.i64 r1, [x]\ndiv.i64 r1, r1, r1\nstg.i64 [x], r1",
            2,
            FaultKind::DivisionByZero,
            1,
        ),
        (
            "buffer x: u8 read_write\npool 16\npool_alloc r0, 9\npool_alloc r0, 8\nmov_imm.u8 r1, 0\nstg.u8 [x + 0], r1",
            4,
            FaultKind::PoolExhausted { bytes: 8 },
            1,
        ),
        (
            "buffer x: u8 read_write\nshared 8\nlds.u64 r0, [shared + 8]\nbar.sync 0\nmov_imm.u8 r1, 0\nstg.u8 [x + 0], r1",
            4,
            FaultKind::OutOfBounds {
                address: 8,
                ty: Type::U64,
                size: 8,
            },
            0,
        ),
    ];
    for device in devices("faults") {
        for (text, lanes, kind, instruction) in cases {
            let (program, launch) = (checked(text), LaunchConfig::linear(lanes, lanes.min(4)));
            let (_, fault) = run_on(&device, &program, &launch, &[vec![0; 16]], Bounds::Checked)
                .unwrap_or_else(|error| panic!("{error}\n{text}"));
            let fault = fault.unwrap_or_else(|| panic!("{device:?}: no fault\n{text}"));
            assert_eq!(
                fault,
                Fault {
                    lane: fault.lane,
                    instruction,
                    kind
                },
                "{device:?}\n{text}"
            );
            assert!(fault.lane < u64::from(lanes));
        }
    }
}
