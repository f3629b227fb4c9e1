// One member of a classic group over KafkaJS, until a line comes on stdin or stdin ends; says what client.py says.
//
// node kafkajs_client.js '{"group_id": .., "client_id": .., ..}' topic ..
const readline = require('readline')
const { Kafka, logLevel } = require('kafkajs')

const told = JSON.parse(process.argv[2])
const kafka = new Kafka({
  clientId: told.client_id,
  brokers: [told.address],
  logLevel: logLevel.NOTHING,
  retry: { initialRetryTime: 200, maxRetryTime: 1000, retries: 100 },
})
const consumer = kafka.consumer({
  groupId: told.group_id,
  sessionTimeout: told.session_ms,
  rebalanceTimeout: 20000,
  heartbeatInterval: 300,
  metadataMaxAge: 500,
})
let memberId = ''
let held = []

function tell(call, partitions) {
  console.log(JSON.stringify({ call, ms: Date.now(), member_id: memberId, partitions }))
}

function give() {
  if (held.length > 0) tell('revoked', held)
  held = []
}

consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
  give()
  memberId = payload.memberId
  held = Object.entries(payload.memberAssignment).flatMap(([topic, numbers]) => numbers.map(number => [topic, number]))
  tell('assigned', held)
})
consumer.on(consumer.events.REBALANCING, give)

async function main() {
  await consumer.connect()
  await consumer.subscribe({ topics: process.argv.slice(3) })
  await consumer.run({ eachBatch: async () => {} })
  console.log('{"call": "ready"}')
  const orders = readline.createInterface({ input: process.stdin })
  const end = async () => {
    await consumer.disconnect()
    give()
    process.exit(0)
  }
  orders.once('line', end)
  orders.once('close', end)
}

main()
