import { Empty } from "../ui";

export default function Compare() {
  return <Empty>This view is being built.</Empty>;
}
