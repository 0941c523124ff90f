// A joint as a body in another process, with Boost.Beast and msgpack-cxx:
//
//   apt-get install libboost-dev libmsgpack-cxx-dev
//   g++ -O2 -std=c++17 -pthread examples/robot.cpp -o robot && ./robot 9000
//
// docs/robots.md has the protocol. Replace the lines that move `angle` by your sensors and motors.

#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/websocket.hpp>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <iostream>
#include <map>
#include <msgpack.hpp>
#include <optional>
#include <string>
#include <vector>

namespace beast = boost::beast;
using tcp = boost::asio::ip::tcp;
using Clock = std::chrono::steady_clock;
using Packer = msgpack::packer<msgpack::sbuffer>;

constexpr double PERIOD = 0.02;  // seconds

double seconds() { return std::chrono::duration<double>(Clock::now().time_since_epoch()).count(); }

void pack_bin(Packer& packer, const void* bytes, size_t size) {
  packer.pack_bin(static_cast<uint32_t>(size));
  packer.pack_bin_body(static_cast<const char*>(bytes), static_cast<uint32_t>(size));
}

// An array of float32: a map with binary keys. The machine is little-endian.
void pack_array(Packer& packer, const std::vector<float>& numbers) {
  packer.pack_map(4);
  pack_bin(packer, "__ndarray__", 11);
  packer.pack_true();
  pack_bin(packer, "data", 4);
  pack_bin(packer, numbers.data(), 4 * numbers.size());
  pack_bin(packer, "dtype", 5);
  packer.pack(std::string("<f4"));
  pack_bin(packer, "shape", 5);
  packer.pack(std::vector<uint64_t>{numbers.size()});
}

void pack_channel(Packer& packer, const char* name, const char* unit, double low, double high, const char* kind, bool is) {
  packer.pack_map(7);
  packer.pack(std::string("name")), packer.pack(std::string(name));
  packer.pack(std::string("unit")), packer.pack(std::string(unit));
  packer.pack(std::string("low")), packer.pack(low);
  packer.pack(std::string("high")), packer.pack(high);
  packer.pack(std::string("shape")), packer.pack_array(0);
  packer.pack(std::string("dtype")), packer.pack(std::string("<f4"));
  packer.pack(std::string(kind)), packer.pack(is);
}

// A message of the loop: its fields by name.
struct Message {
  msgpack::object_handle handle;
  std::map<std::string, msgpack::object> fields;

  explicit Message(const std::string& bytes) : handle(msgpack::unpack(bytes.data(), bytes.size())) {
    const msgpack::object& map = handle.get();
    if (map.type != msgpack::type::MAP) throw std::runtime_error("a message is a map");
    for (uint32_t i = 0; i < map.via.map.size; ++i) {
      const auto& pair = map.via.map.ptr[i];
      if (pair.key.type == msgpack::type::STR) fields[pair.key.as<std::string>()] = pair.val;
    }
  }

  std::string kind() const { return fields.at("type").as<std::string>(); }
  int64_t sequence() const { return fields.at("sequence").as<int64_t>(); }

  // The first number of an array.
  float number(const char* name) const {
    const msgpack::object& array = fields.at(name);
    for (uint32_t i = 0; i < array.via.map.size; ++i) {
      const auto& [key, value] = array.via.map.ptr[i];
      if (key.type == msgpack::type::BIN && key.via.bin.size == 4 && !memcmp(key.via.bin.ptr, "data", 4) && value.via.bin.size >= 4) {
        float number;
        memcpy(&number, value.via.bin.ptr, 4);
        return number;
      }
    }
    throw std::runtime_error("an array has data");
  }
};

class Robot {
 public:
  Robot(boost::asio::io_context& context, tcp::socket socket) : context_(context), socket_(std::move(socket)) {
    socket_.binary(true);
    socket_.accept();
    read();
  }

  void run() {
    while (!is_closed_) {
      if (error_) throw beast::system_error(error_);
      context_.restart();
      if (!due_) {
        context_.run_one();
      } else if (seconds() >= *due_) {
        period();
      } else {
        context_.run_one_for(std::chrono::microseconds(static_cast<long>(1e6 * (*due_ - seconds())) + 1));
      }
    }
  }

 private:
  // Takes each message when it has arrived, while `run` waits for the next period.
  void read() {
    socket_.async_read(buffer_, [this](beast::error_code error, size_t) {
      if (error) {
        error_ = error;
        return;
      }
      take(Message(beast::buffers_to_string(buffer_.data())));
      buffer_.consume(buffer_.size());
      if (!is_closed_) read();
    });
  }

  void take(const Message& message) {
    if (message.sequence() <= last_) return;  // late or repeated
    last_ = message.sequence();
    const std::string kind = message.kind();
    if (kind == "hello") {
      send_spec();
    } else if (kind == "reset") {
      speed_ = 0.0, answers_ = last_;
      if (!due_) send_observation(last_);
    } else if (kind == "start") {
      hold_ = message.fields.at("hold").as<double>();
      due_ = seconds();
    } else if (kind == "action") {
      speed_ = std::clamp(message.number("action"), -1.0f, 1.0f);
      answers_ = last_, arrived_ = seconds();
      auto age = message.fields.find("age");  // sends just before the loop looks
      if (age != message.fields.end()) *due_ += 0.1 * (age->second.as<double>() - PERIOD / 10);
    } else if (kind == "close") {
      is_closed_ = true;
    }
  }

  void period() {
    due_ = std::max(*due_ + PERIOD, seconds());
    if (seconds() - arrived_ > hold_) speed_ = 0.0;  // the robot's own watchdog
    angle_ += PERIOD * speed_;                       // your motors and sensors
    send_observation(++number_);
  }

  void send_observation(int64_t number) {
    msgpack::sbuffer buffer;
    Packer packer(buffer);
    packer.pack_map(4);
    packer.pack(std::string("type")), packer.pack(std::string("observation"));
    packer.pack(std::string("sequence")), packer.pack(number);
    packer.pack(std::string("answers")), packer.pack(answers_);
    packer.pack(std::string("observation")), pack_array(packer, {static_cast<float>(angle_)});
    socket_.write(boost::asio::buffer(buffer.data(), buffer.size()));
  }

  void send_spec() {
    msgpack::sbuffer buffer;
    Packer packer(buffer);
    packer.pack_map(8);
    packer.pack(std::string("type")), packer.pack(std::string("spec"));
    packer.pack(std::string("sequence")), packer.pack(last_);
    packer.pack(std::string("name")), packer.pack(std::string("joint"));
    packer.pack(std::string("protocol")), packer.pack(1);
    packer.pack(std::string("period")), packer.pack(PERIOD);
    packer.pack(std::string("observation")), packer.pack_array(1);
    pack_channel(packer, "angle", "rad", -3.2, 3.2, "wraps", true);
    packer.pack(std::string("action")), packer.pack_array(1);
    pack_channel(packer, "speed", "rad/s", -1.0, 1.0, "discrete", false);
    packer.pack(std::string("safe_action")), pack_array(packer, {0.0f});
    socket_.write(boost::asio::buffer(buffer.data(), buffer.size()));
  }

  boost::asio::io_context& context_;
  beast::websocket::stream<tcp::socket> socket_;
  beast::flat_buffer buffer_;
  beast::error_code error_;
  bool is_closed_ = false;
  double angle_ = 0.5, speed_ = 0.0, hold_ = 0.0, arrived_ = 0.0;
  int64_t number_ = 0, answers_ = 0, last_ = -1;
  std::optional<double> due_;  // when the next period begins, in real time
};

int main(int count, char** arguments) {
  const unsigned short port = count > 1 ? static_cast<unsigned short>(std::stoi(arguments[1])) : 9000;
  boost::asio::io_context context;
  tcp::acceptor acceptor(context, {boost::asio::ip::make_address("127.0.0.1"), port});
  for (;;) {
    try {
      tcp::socket socket = acceptor.accept();
      socket.set_option(tcp::no_delay(true));
      Robot(context, std::move(socket)).run();
    } catch (const std::exception& error) {
      std::cerr << error.what() << "\n";  // your motors go to their safe state here
    }
  }
}
