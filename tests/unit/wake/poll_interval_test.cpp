#include "wake/poll_interval.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "fixture/random.hpp"

namespace evictd::wake::poll_interval_test {
namespace {

using namespace std::chrono_literals;
using core::Duration;
using core::Instant;
using fixture::Random;
using fixture::seeds;

constexpr std::int64_t mebi = 1 << 20;
constexpr double rate = 4096.0 * mebi;  // units a second
const PollSettings settings{.rate = rate, .fastest = 16 * rate, .shortest = 1ms, .longest = 10s, .step = 4 * mebi};

constexpr Instant at(Duration time) { return Instant{time}; }
double taken_in(Duration time) { return rate * std::chrono::duration<double>(time).count(); }
Sample sees(std::int64_t available, Duration time, Duration cost = 0ns) {
  return {.available = available, .time = at(time), .cost = cost};
}

/// What is available over time: straight pieces.
struct Curve {
  struct Point {
    Duration time;
    std::int64_t available;
  };
  std::vector<Point> points;

  [[nodiscard]] std::int64_t available(Duration time) const {
    const auto after = std::ranges::lower_bound(points, time, {}, &Point::time);
    if (after == points.end()) return points.back().available;
    if (after == points.begin()) return after->available;
    const auto& before = *std::prev(after);
    const double share =
        static_cast<double>((time - before.time).count()) / static_cast<double>((after->time - before.time).count());
    return before.available +
           static_cast<std::int64_t>(std::llround(share * static_cast<double>(after->available - before.available)));
  }
  /// The least from `begin` to `end`.
  [[nodiscard]] std::int64_t least(Duration begin, Duration end) const {
    auto result = std::min(available(begin), available(end));
    for (const auto& point : points)
      if (point.time > begin && point.time < end) result = std::min(result, point.available);
    return result;
  }
  [[nodiscard]] Duration end() const { return points.back().time; }
};

enum class Shape { constant, bursts, saw_teeth, releases, still, anything };

/// Taken at most at `rate`, given back at any.
Curve draw(Random& random, Shape shape) {
  Curve curve{{{0ns, random.between(0, std::int64_t{1} << random.between(20, 36))}}};
  const auto piece = [&](double speed, Duration time) {  // speed: above 0 takes
    const auto& last = curve.points.back();
    const auto change = static_cast<std::int64_t>(speed * std::chrono::duration<double>(time).count());
    curve.points.push_back({last.time + time, last.available - change});
  };
  const auto some_time = [&] { return Duration{random.between(1, std::int64_t{1} << random.between(10, 31))}; };
  const auto share = [&] { return static_cast<double>(random.between(0, 1000)) / 1000; };
  const auto constant = share();
  for (int i = 0; i < 40; ++i) {
    switch (shape) {
      case Shape::constant: piece(rate * constant, some_time()); break;
      case Shape::bursts: piece(random.chance(50) ? rate : 0, some_time()); break;
      case Shape::saw_teeth: piece(i % 2 == 0 ? rate * share() : -rate * 4, some_time()); break;
      case Shape::releases: piece(-rate * 10 * share(), some_time()); break;
      case Shape::still: piece(0, some_time()); break;
      case Shape::anything: piece(random.chance(30) ? -rate * 8 * share() : rate * share(), some_time()); break;
    }
  }
  return curve;
}

/// Looks as the sampler does, each up to `lateness` late, with a pass that re-arms after some of the news.
struct Simulation {
  Random random;
  Curve curve;
  Duration lateness;
  std::vector<PollLevel> levels;
  PollInterval poll{settings};
  std::vector<Duration> looks{};

  void run(const auto& after_look) {
    poll.arm(levels, sees(curve.available(0ns), 0ns));
    auto last = Duration{0};
    for (int count = 0; count < 5000; ++count) {
      const auto time = poll.next().time_since_epoch() + Duration{random.between(0, lateness.count())};
      if (time > curve.end()) return;
      const bool all_clear = !poll.any_met();
      const auto available = curve.available(time);
      const auto news = poll.look(sees(available, time));
      looks.push_back(time);
      after_look(last, time, all_clear, news);
      if (news && random.chance(70)) poll.arm(levels, sees(available, time));
      last = time;
    }
  }
};

/// Up to three thresholds, as often as not near to where the curve begins.
std::vector<PollLevel> some_levels(Random& random, const Curve& curve) {
  std::vector<PollLevel> levels;
  for (auto count = random.between(1, 3); count > 0; --count)
    levels.push_back({random.chance(50) ? random.between(0, curve.points.front().available)
                                        : curve.points.front().available - random.between(0, 64 * mebi),
                      random.chance(50)});
  return levels;
}

void for_each_curve(const auto& test) {
  for (const auto shape :
       {Shape::constant, Shape::bursts, Shape::saw_teeth, Shape::releases, Shape::still, Shape::anything})
    for (const auto seed : seeds(100)) {
      CAPTURE(seed);
      CAPTURE(static_cast<int>(shape));
      Random random{seed};
      const auto curve = draw(random, shape);
      test(random, curve);
    }
}

}  // namespace

TEST_CASE("whatever is taken within the rate, a crossing is seen before rate x 2 ms has been taken beyond it") {
  std::size_t crossings = 0;
  for_each_curve([&](Random& random, const Curve& curve) {
    Simulation simulation{random, curve, 1ms, some_levels(random, curve)};
    simulation.run([&](Duration last, Duration time, bool all_clear, const std::optional<PollLevel>& news) {
      if (!all_clear) return;
      // Since the look before, when no threshold was met.
      const auto threshold = simulation.poll.highest();
      const auto beyond = threshold - curve.least(last, time);
      CHECK(static_cast<double>(beyond) <= taken_in(2ms));
      if (curve.available(time) >= threshold) return;
      ++crossings;
      CHECK(news.has_value());
    });
  });
  CHECK(crossings > 250);  // the curves are worth something
}

TEST_CASE("each lower threshold is approached as carefully, though a higher one is met") {
  std::size_t crossings = 0;
  for_each_curve([&](Random& random, const Curve& curve) {
    Simulation simulation{random, curve, 1ms, some_levels(random, curve)};
    simulation.run([&](Duration last, Duration time, bool, const std::optional<PollLevel>&) {
      for (const auto& level : simulation.levels) {
        if (curve.available(last) < level.threshold) continue;
        CHECK(static_cast<double>(level.threshold - curve.least(last, time)) <= taken_in(2ms));
        if (curve.available(time) < level.threshold) ++crossings;
      }
    });
  });
  CHECK(crossings > 250);
}

TEST_CASE("with at least d above every threshold there are at most max(rate/d, 1/longest) looks a second, and one") {
  std::size_t counted = 0;
  for_each_curve([&](Random& random, const Curve& curve) {
    Simulation simulation{random, curve, random.pick<Duration>({0ns, 1ms}), some_levels(random, curve)};
    simulation.run([](auto&&...) {});
    const auto& looks = simulation.looks;
    for (int i = 0; i < 20 && !looks.empty(); ++i) {
      const auto begin = Duration{random.between(0, curve.end().count())};
      const auto end = Duration{random.between(begin.count(), curve.end().count())};
      const auto count = std::ranges::count_if(looks, [&](Duration look) { return look >= begin && look <= end; });
      const auto seconds = std::chrono::duration<double>(end - begin).count();
      CHECK(static_cast<double>(count) <= seconds * 1000 + 1);
      const auto d = curve.least(begin, end) - simulation.poll.highest();
      if (d <= 0) continue;
      ++counted;
      const double longest = std::chrono::duration<double>(settings.longest).count();
      CHECK(static_cast<double>(count) <= seconds * std::max(rate / static_cast<double>(d), 1 / longest) + 1);
    }
  });
  CHECK(counted > 500);
}

TEST_CASE("far away it looks at the longest interval, and close by at the shortest") {
  PollInterval poll{settings};
  CHECK(poll.next() == Instant::max());
  poll.arm({{100 * mebi}}, sees(std::int64_t{1} << 50, 1s));
  CHECK(poll.interval() == settings.longest);
  CHECK(poll.next() == at(11s));
  poll.arm({{100 * mebi}}, sees(100 * mebi + 4096 * mebi, 1s));
  CHECK(poll.interval() == 1s);
  poll.arm({{100 * mebi}}, sees(101 * mebi, 1s));
  CHECK(poll.interval() == 1ms);
  poll.arm({}, sees(101 * mebi, 1s));
  CHECK(poll.next() == Instant::max());
}

TEST_CASE("a signal without levels is not read: that is no fall to nothing") {
  PollInterval poll{settings};
  poll.arm({{100 * mebi}}, sees(std::int64_t{1} << 40, 1s));
  poll.arm({}, sees(0, 2s));
  CHECK(poll.next() == Instant::max());
  poll.arm({{100 * mebi}}, sees(std::int64_t{1} << 40, 3s));
  CHECK(poll.rate() == settings.rate);
}

TEST_CASE("what a pass has seen is no news; a crossing is, once, in either direction") {
  const PollLevel hard{100 * mebi}, soft{200 * mebi, false};
  PollInterval poll{settings};
  poll.arm({soft, hard}, sees(150 * mebi, 0s));
  CHECK(poll.any_met());
  CHECK_FALSE(poll.look(sees(140 * mebi, 1s)));
  CHECK(poll.look(sees(99 * mebi, 2s)) == hard);
  CHECK_FALSE(poll.look(sees(99 * mebi, 3s)));
  CHECK(poll.look(sees(100 * mebi, 4s)) == hard);
  CHECK(poll.look(sees(200 * mebi, 5s)) == soft);
  CHECK_FALSE(poll.any_met());
  CHECK_FALSE(poll.look(sees(300 * mebi, 6s)));
}

TEST_CASE("what sits still beyond a met threshold is looked at a hundred times a second at most") {
  for (const auto seed : seeds(100)) {
    Random random{seed};
    PollInterval poll{settings};
    const auto available = random.between(0, 1000 * mebi);
    poll.arm({{available + random.between(1, 1000 * mebi), random.chance(50)}}, sees(available, 0s));
    for (int i = 0; i < 100; ++i) {
      CHECK(poll.interval() >= 10ms);
      CHECK_FALSE(poll.look({.available = available, .time = poll.next()}));
    }
  }
}

TEST_CASE("a met hard threshold is a reason again each time the shortage has grown by a step and an eighth") {
  const PollLevel hard{1000 * mebi}, soft{2000 * mebi, false};
  PollInterval poll{settings};
  poll.arm({hard, soft}, sees(990 * mebi, 0s));
  CHECK_FALSE(poll.look(sees(987 * mebi, 10ms)));
  CHECK(poll.look(sees(986 * mebi, 20ms)) == hard);  // 4 MiB: the step
  CHECK_FALSE(poll.look(sees(983 * mebi, 30ms)));
  poll.arm({hard, soft}, sees(600 * mebi, 1s));
  CHECK_FALSE(poll.look(sees(551 * mebi, 1010ms)));
  CHECK(poll.look(sees(550 * mebi, 1020ms)) == hard);  // 50 MiB: an eighth of 400

  poll.arm({soft}, sees(1900 * mebi, 2s));
  CHECK_FALSE(poll.look(sees(0, 3s)));
}

TEST_CASE("in a hurry it looks at once, then at the shortest interval, and later as before") {
  PollInterval poll{settings};
  poll.arm({{100 * mebi}}, sees(std::int64_t{1} << 40, 0s));
  poll.poll_fast(at(1s), at(3s));
  CHECK(poll.next() == at(1s));
  CHECK_FALSE(poll.look(sees(std::int64_t{1} << 40, 1s)));
  CHECK(poll.interval() == 1ms);
  poll.poll_fast(at(1s), at(2s));  // shortens nothing
  CHECK(poll.polling_fast(at(2500ms)));
  CHECK_FALSE(poll.look(sees(std::int64_t{1} << 40, 3s)));
  CHECK(poll.interval() == settings.longest);
}

TEST_CASE("what is seen to go faster than assumed raises the rate by half above that, up to a limit, for a while") {
  PollInterval poll{settings};
  const auto begin = std::int64_t{1} << 40;
  poll.arm({{0}}, sees(begin, 0s));
  CHECK_FALSE(poll.look(sees(begin - 3 * 4096 * mebi, 1s)));  // three times as fast
  CHECK(poll.rate() == doctest::Approx(4.5 * rate));
  CHECK_FALSE(poll.look(sees(begin - 3 * 4096 * mebi, 30s)));
  CHECK(poll.rate() == doctest::Approx(4.5 * rate));
  CHECK_FALSE(poll.look(sees(begin - 3 * 4096 * mebi, 61s)));
  CHECK(poll.rate() == doctest::Approx(2.25 * rate));
  CHECK_FALSE(poll.look(sees(0, 62s)));
  CHECK(poll.rate() == doctest::Approx(settings.fastest));
  for (int minute = 2; minute < 20; ++minute) CHECK_FALSE(poll.look(sees(0, minute * 1min + 10s)));
  CHECK(poll.rate() == doctest::Approx(rate));
}

TEST_CASE("a jump within a few milliseconds, or from one kind of look to the other, is no rate") {
  PollInterval poll{settings};
  poll.arm({{0}}, sees(1000 * mebi, 0s));
  CHECK_FALSE(poll.look(sees(900 * mebi, 2ms)));
  CHECK_FALSE(poll.look(sees(990 * mebi, 12ms)));
  CHECK_FALSE(poll.look({.available = 10 * mebi, .time = at(20ms), .exact = false}));
  CHECK_FALSE(poll.look({.available = 10 * mebi, .time = at(40ms), .exact = false}));
  CHECK(poll.rate() == rate);
}

TEST_CASE("dear looks come so seldom that they take a twentieth of a processor") {
  PollInterval poll{settings};
  poll.arm({{100 * mebi}}, sees(100 * mebi, 0s));
  CHECK_FALSE(poll.look(sees(100 * mebi, 1ms, 5ms)));
  CHECK(poll.interval() == 1ms);  // one may have been interrupted
  CHECK_FALSE(poll.look(sees(100 * mebi, 2ms, 5ms)));
  CHECK(poll.interval() == 100ms);
  CHECK_FALSE(poll.look(sees(100 * mebi, 102ms, 6ms)));
  CHECK(poll.interval() == 100ms);
  // A cheap look of the other kind is measured by itself.
  CHECK_FALSE(poll.look({.available = 100 * mebi, .time = at(202ms), .exact = false, .cost = 2us}));
  CHECK(poll.interval() == 1ms);
  CHECK_FALSE(poll.look(sees(100 * mebi, 203ms, 5ms)));
  CHECK(poll.interval() == 100ms);
}

TEST_CASE("numbers at the edge of what fits do no harm") {
  const auto most = std::numeric_limits<std::int64_t>::max();
  PollInterval poll{settings};
  poll.arm({{0}, {most}}, sees(most, 0s));
  CHECK(poll.interval() == 1ms);
  CHECK(poll.look(sees(0, 1s)) == PollLevel{most});
  poll.arm({{0}}, sees(most, 0s));
  CHECK(poll.interval() == settings.longest);
}

}  // namespace evictd::wake::poll_interval_test
