-- blocks: which lanes and workers a run of seqs has jobs of, so that a search passes over the other runs.
--
-- uses     rows writes
-- keys     blocks
--
-- `blocks` maps a block, the seqs that have the same seq / 256, to how many jobs of it are stored, and then
-- the lanes that they have been in and the workers that have held them: '<jobs> <lane> <lane> …\n<worker>\n…'.
-- It names all that a search must find, and perhaps more. A block without jobs has no entry. Neither has one
-- with jobs from before schema 3: a search looks at all of those (see scan).

local BLOCK_JOBS = 256
local WORKERS_BYTES_MAX = 4000 -- of one block; past that it is said to have jobs of any worker
local ANY_WORKER = '*'

local block_counts, block_lanes, block_workers = {}, {}, {}
local noted_block, noted_worker -- the last: jobs of one step mostly share both

local function block_of(seq)
  return math.floor(seq / BLOCK_JOBS)
end

local function note_count(seq, jobs)
  local block = block_of(seq)
  block_counts[block] = (block_counts[block] or 0) + jobs
end

-- The same of jobs that stand one after the other.
local function note_counts(first, jobs)
  local last = first + jobs - 1
  for block = block_of(first), block_of(last) do
    local from, to = math.max(first, block * BLOCK_JOBS), math.min(last, (block + 1) * BLOCK_JOBS - 1)
    note_count(from, to - from + 1)
  end
end

local function note_lane(seq, lane)
  local block = block_of(seq)
  local lanes = block_lanes[block]
  if not lanes then
    lanes = {}
    block_lanes[block] = lanes
  end
  lanes[lane] = true
end

local function note_worker(seq, worker)
  local block = block_of(seq)
  if block == noted_block and worker == noted_worker then
    return
  end
  noted_block, noted_worker = block, worker
  local workers = block_workers[block]
  if not workers then
    workers = {}
    block_workers[block] = workers
  end
  workers[worker] = true
end

local function names_lane(lanes, lane)
  return string.find(lanes, ' ' .. lane .. ' ', 1, true)
end

local function names_worker(workers, worker)
  return string.find(workers, '\n' .. worker .. '\n', 1, true)
end

-- How many jobs; ' lane lane '; '\nworker\nworker\n'.
local function read_block(entry)
  local jobs, lanes, workers = string.match(entry, '^(%d+)( [%d ]*)(\n.*)$')
  return tonumber(jobs), lanes, workers
end

local function with_lanes(lanes, more)
  for lane in pairs(more) do
    if not names_lane(lanes, lane) then
      lanes = lanes .. lane .. ' '
    end
  end
  return lanes
end

local function with_workers(workers, more)
  for worker in pairs(more) do
    if not names_worker(workers, ANY_WORKER) and not names_worker(workers, worker) then
      workers = workers .. worker .. '\n'
    end
  end
  return #workers > WORKERS_BYTES_MAX and '\n' .. ANY_WORKER .. '\n' or workers
end

-- Write what has been noted. `is_new`: the jobs are being stored, so a block may begin with them.
local function write_blocks(is_new)
  local touched, seen = {}, {}
  for _, notes in ipairs({ block_counts, block_lanes, block_workers }) do
    for block in pairs(notes) do
      if not seen[block] then
        seen[block] = true
        touched[#touched + 1] = block
      end
    end
  end
  for index, entry in ipairs(fetch('HMGET', K.blocks, touched)) do
    if entry or is_new then
      local block = touched[index]
      local jobs, lanes, workers = read_block(entry or '0 \n')
      jobs = jobs + (block_counts[block] or 0)
      lanes = block_lanes[block] and with_lanes(lanes, block_lanes[block]) or lanes
      workers = block_workers[block] and with_workers(workers, block_workers[block]) or workers
      local after = jobs .. lanes .. workers
      if jobs == 0 then
        hdel(K.blocks, block)
      elseif after ~= entry then
        hset(K.blocks, block, after)
      end
    end
  end
end
