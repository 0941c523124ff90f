"""The agent of feagi-rust-py-libs against a served genome: CONTROL SENSORS MOTORS TOKEN MODE."""

import base64
import json
import os
import signal
import sys
import time

import feagi_rust_py_libs as feagi

CONTROL, SENSORS, MOTORS, TOKEN, MODE = sys.argv[1:]
AGENT = feagi.feagi_agent
VOXELS = feagi.data_structures.neurons_voxels.xyzp
CorticalID = feagi.data_structures.genomic.cortical_area.CorticalID

config = AGENT.PyAgentConfig("robot", AGENT.AgentType(AGENT.AgentType.BOTH))
config.with_agent_descriptor("maker", "robot", 1)
config.with_registration_endpoint(CONTROL)
config.with_sensory_endpoint(SENSORS)
config.with_motor_endpoint(MOTORS)
config.with_heartbeat_interval(0.2)
config.with_connection_timeout_ms(30000)
config.with_registration_retries(1)
config.with_auth_token_base64(TOKEN)
config.with_vision_capability("camera", 4, 1, 1, "iseen_")
config.with_motor_capability("servo", 12, ["omove_"])
config.validate()
client = AGENT.PyAgentClient(config)

if MODE == "refused":
    try:
        client.connect()
    except Exception as error:
        assert "auth" in str(error), error
        print("refused")
        sys.exit()
    raise AssertionError("a token that is another is accepted")

client.connect()
assert client.is_registered()
if MODE == "killed":
    client.send_sensory_data([(0, 1.0)])
    print("connected", flush=True)
    os.kill(os.getpid(), signal.SIGKILL)


def voxels(raw):
    """The voxels of the areas of a motor frame, by the client's own decoder."""
    container = feagi.data_serialization.FeagiByteContainer()
    container.load_bytes_and_verify(bytes(raw))
    assert container.number_contained_structures == 1
    areas = container.try_create_new_struct_from_index(0)
    found = {}
    for name, (x, y, z, p) in areas.iter_full():
        assert (p == 1.0).all()
        found[base64.b64decode(name)] = list(zip(x.tolist(), y.tolist(), z.tolist()))
    return found


def until(area, voxel):
    """Polls until a voxel of an area fires; polling also sends heart beats."""
    while True:
        raw = client.receive_motor_data_raw()
        if raw is None:
            time.sleep(0.001)
        elif voxel in voxels(raw).get(area, []):
            return


until(b"obeat___", (0, 0, 0))
# Neuron 2 of the camera is the voxel (2, 0, 0).
client.send_sensory_data([(2, 1.5)])
until(b"omove___", (2, 0, 0))
until(b"oecho___", (3, 0, 0))
# A container that the client's own serialization makes.
for number in range(1, 20):
    voxel = (number % 4, 0, number % 3)
    arrays = VOXELS.PyNeuronVoxelXYZPArrays()
    arrays.push(VOXELS.PyNeuronVoxelXYZP(*voxel, 1.0))
    areas = VOXELS.CorticalMappedXYZPNeuronVoxels()
    areas.insert(CorticalID.try_from_bytes(b"iseen___"), arrays)
    container = feagi.data_serialization.FeagiByteContainer()
    container.add_struct(areas, number)
    client.send_sensory_bytes(bytes(container.copy_out_as_byte_vector()))
    until(b"omove___", voxel)
# As JSON.
client.send_sensory_data([(1, 1.5)])
while True:
    motors = client.receive_motor_data()
    if motors and "b21vdmVfX18=" in (motors if isinstance(motors, dict) else json.loads(motors)):
        break
    time.sleep(0.001)
# Heart beats, with answers.
end = time.monotonic() + 1.0
while time.monotonic() < end:
    client.receive_motor_data_raw()
    time.sleep(0.01)
assert client.is_registered()
begin = time.monotonic()
client.disconnect()
assert time.monotonic() - begin < 30, "the deregistration has no answer"
print("done")
