# Sidekiq against a server: sidekiq_jobs.rb port. Its worker takes plain, bulk, scheduled and retried jobs; a dead one is kept.
require "rbconfig"
require "sidekiq"
require "sidekiq/api"

PORT = Integer(ENV["INGOT_PORT"] || ARGV[0])
WAIT_SECONDS = 60
Sidekiq.configure_client { |config| config.redis = { url: "redis://127.0.0.1:#{PORT}/0" } }
Sidekiq.configure_server do |config|
  config.redis = { url: "redis://127.0.0.1:#{PORT}/0" }
  config.options[:average_scheduled_poll_interval] = 1
end

def redis(&block) = Sidekiq.redis(&block)

class Add
  include Sidekiq::Worker
  def perform(key, number) = redis { |r| r.incrby(key, number) }
end

class Third
  include Sidekiq::Worker
  sidekiq_retry_in { 0 }
  def perform(key)
    raise "not yet" if redis { |r| r.incr(key) } < 3
  end
end

class Fail
  include Sidekiq::Worker
  sidekiq_options retry: 0
  def perform = raise("on purpose")
end

def wait_for(what)
  deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + WAIT_SECONDS
  until yield
    abort "failed: #{what}" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
    sleep 0.02
  end
end

def sum(key) = redis { |r| r.get(key).to_i }

def jobs
  Add.perform_async("plain", 5)
  wait_for("a job") { sum("plain") == 5 }
  Sidekiq::Client.push_bulk("class" => Add, "args" => (1..200).map { |n| ["bulk", n] })
  wait_for("jobs in bulk") { sum("bulk") == 20_100 }
  began = Time.now
  Add.perform_in(1, "late", 7)
  abort "failed: it was due at once" unless Sidekiq::ScheduledSet.new.size == 1
  wait_for("a scheduled job") { sum("late") == 7 }
  abort "failed: too early" if Time.now - began < 1
  Third.perform_async("tries")
  wait_for("two more tries") { sum("tries") == 3 }
  Fail.perform_async
  wait_for("the dead job") { Sidekiq::DeadSet.new.size == 1 }
  abort "failed: its error" unless Sidekiq::DeadSet.new.first["error_message"] == "on purpose"
  wait_for("idle queues") { Sidekiq::Queue.new.size.zero? && Sidekiq::Workers.new.size.zero? && Sidekiq::RetrySet.new.size.zero? }
  wait_for("the counts") { Sidekiq::Stats.new.processed >= 206 && Sidekiq::Stats.new.failed == 3 }
  abort "failed: its heartbeat" unless Sidekiq::ProcessSet.new.size == 1
end

unless Sidekiq.server?
  worker = spawn({ "INGOT_PORT" => PORT.to_s }, "sidekiq", "-c", "4", "-r", File.expand_path(__FILE__), "-t", "5",
                 in: "/dev/null", out: $stderr)
  begin
    jobs
  ensure
    Process.kill("TERM", worker)
    Process.wait(worker)
  end
  puts "sidekiq: ok"
end
