//! The message types that are exchanged with ROS.

use tectum::{Error, Result};

use super::definition::{Definition, short_name};
use crate::nearest::suggestion;

/// Each type with its own fields; those of the types in it are other rows.
pub const INTERFACES: [(&str, &str); 25] = [
    (
        "builtin_interfaces/msg/Duration",
        "int32 sec\nuint32 nanosec\n",
    ),
    ("builtin_interfaces/msg/Time", "int32 sec\nuint32 nanosec\n"),
    (
        "geometry_msgs/msg/Point",
        "float64 x\nfloat64 y\nfloat64 z\n",
    ),
    (
        "geometry_msgs/msg/Pose",
        "Point position\nQuaternion orientation\n",
    ),
    (
        "geometry_msgs/msg/PoseWithCovariance",
        "Pose pose\nfloat64[36] covariance\n",
    ),
    (
        "geometry_msgs/msg/Quaternion",
        "float64 x 0\nfloat64 y 0\nfloat64 z 0\nfloat64 w 1\n",
    ),
    (
        "geometry_msgs/msg/Twist",
        "Vector3 linear\nVector3 angular\n",
    ),
    (
        "geometry_msgs/msg/TwistStamped",
        "std_msgs/Header header\nTwist twist\n",
    ),
    (
        "geometry_msgs/msg/TwistWithCovariance",
        "Twist twist\nfloat64[36] covariance\n",
    ),
    (
        "geometry_msgs/msg/Vector3",
        "float64 x\nfloat64 y\nfloat64 z\n",
    ),
    (
        "nav_msgs/msg/Odometry",
        "std_msgs/Header header\nstring child_frame_id\ngeometry_msgs/PoseWithCovariance pose\n\
         geometry_msgs/TwistWithCovariance twist\n",
    ),
    (
        "rcl_interfaces/msg/Log",
        "byte DEBUG=10\nbyte INFO=20\nbyte WARN=30\nbyte ERROR=40\nbyte FATAL=50\n\
         builtin_interfaces/Time stamp\nuint8 level\nstring name\nstring msg\nstring file\n\
         string function\nuint32 line\n",
    ),
    ("rosgraph_msgs/msg/Clock", "builtin_interfaces/Time clock\n"),
    (
        "sensor_msgs/msg/Image",
        "std_msgs/Header header\nuint32 height\nuint32 width\nstring encoding\n\
         uint8 is_bigendian\nuint32 step\nuint8[] data\n",
    ),
    (
        "sensor_msgs/msg/Imu",
        "std_msgs/Header header\ngeometry_msgs/Quaternion orientation\n\
         float64[9] orientation_covariance\ngeometry_msgs/Vector3 angular_velocity\n\
         float64[9] angular_velocity_covariance\ngeometry_msgs/Vector3 linear_acceleration\n\
         float64[9] linear_acceleration_covariance\n",
    ),
    (
        "sensor_msgs/msg/JointState",
        "std_msgs/Header header\nstring[] name\nfloat64[] position\nfloat64[] velocity\n\
         float64[] effort\n",
    ),
    (
        "sensor_msgs/msg/LaserScan",
        "std_msgs/Header header\nfloat32 angle_min\nfloat32 angle_max\nfloat32 angle_increment\n\
         float32 time_increment\nfloat32 scan_time\nfloat32 range_min\nfloat32 range_max\n\
         float32[] ranges\nfloat32[] intensities\n",
    ),
    ("std_msgs/msg/Bool", "bool data\n"),
    (
        "std_msgs/msg/Float32MultiArray",
        "MultiArrayLayout layout\nfloat32[] data\n",
    ),
    (
        "std_msgs/msg/Float64MultiArray",
        "MultiArrayLayout layout\nfloat64[] data\n",
    ),
    (
        "std_msgs/msg/Header",
        "builtin_interfaces/Time stamp\nstring frame_id\n",
    ),
    (
        "std_msgs/msg/MultiArrayDimension",
        "string label\nuint32 size\nuint32 stride\n",
    ),
    (
        "std_msgs/msg/MultiArrayLayout",
        "MultiArrayDimension[] dim\nuint32 data_offset\n",
    ),
    (
        "trajectory_msgs/msg/JointTrajectory",
        "std_msgs/Header header\nstring[] joint_names\nJointTrajectoryPoint[] points\n",
    ),
    (
        "trajectory_msgs/msg/JointTrajectoryPoint",
        "float64[] positions\nfloat64[] velocities\nfloat64[] accelerations\nfloat64[] effort\n\
         builtin_interfaces/Duration time_from_start\n",
    ),
];

impl Definition {
    /// One of [`INTERFACES`](super::INTERFACES).
    ///
    /// # Errors
    /// `Invalid` for another name, listing the known ones.
    pub fn known(name: &str) -> Result<Self> {
        let names = || INTERFACES.iter().map(|(known, _)| *known);
        let own = INTERFACES.iter().find(|(known, _)| *known == name);
        let (_, own) = own.ok_or_else(|| {
            Error::invalid(format!(
                "message type {name:?} is unknown{}; known: {}",
                suggestion(name, names()),
                names().collect::<Vec<_>>().join(", ")
            ))
        })?;
        // Types that it does not contain are left out by the parser.
        let others = INTERFACES.iter().filter(|(other, _)| *other != name);
        let others = others.map(|(other, text)| format!("===\nMSG: {}\n{text}", short_name(other)));
        Self::parse(name, &format!("{own}{}", others.collect::<String>()))
    }
}
