import { Empty } from "../ui";

export default function Log() {
  return <Empty>This view is being built.</Empty>;
}
