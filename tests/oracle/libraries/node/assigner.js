// KafkaJS's RoundRobinAssigner: a group a line in, what its leader would send a line out. The first line is the version.
const readline = require('node:readline')
const { version } = require('kafkajs/package.json')
const { PartitionAssigners, AssignerProtocol } = require('kafkajs')

const { MemberMetadata, MemberAssignment } = AssignerProtocol

const answer = async ({ topics, members, leader }) => {
  const cluster = {
    findTopicPartitionMetadata: topic =>
      Array.from({ length: topics[topic] ?? 0 }, (_, partitionId) => ({ partitionId })),
  }
  const joined = members.map(({ id, subscription }) => ({
    memberId: id,
    memberMetadata: Buffer.from(subscription, 'base64'),
  }))
  const leaders = joined.find(({ memberId }) => memberId === leader)
  const asked = { members: joined, topics: MemberMetadata.decode(leaders.memberMetadata).topics }
  const given = await PartitionAssigners.roundRobin({ cluster }).assign(asked)
  const lists = given.map(({ memberId, memberAssignment }) => {
    const { assignment } = MemberAssignment.decode(memberAssignment)
    return [memberId, Object.keys(assignment).flatMap(topic => assignment[topic].map(number => [topic, number]))]
  })
  return { lists: Object.fromEntries(lists) }
}

const main = async () => {
  console.log(JSON.stringify({ version }))
  for await (const line of readline.createInterface({ input: process.stdin })) {
    console.log(JSON.stringify(await answer(JSON.parse(line))))
  }
}

main()
