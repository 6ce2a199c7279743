# SPDX-License-Identifier: Apache-2.0
"""Write a fabric as ibdiagnet 2's db_csv, with the columns that public excerpts show."""

from __future__ import annotations

from ibprof_converter.fabric.fabric_graph import Fabric, NodeKind

NODES = (
    "NodeDesc,NumPorts,NodeType,ClassVersion,BaseVersion,SystemImageGUID,NodeGUID,PortGUID,DeviceID,PartitionCap,"
    "revision,VendorID,LocalPortNum"
)
PORTS = (
    "NodeGuid,PortGuid,PortNum,MKey,GIDPrfx,MSMLID,LID,CapMsk,M_KeyLeasePeriod,DiagCode,LinkWidthActv,LinkWidthSup,"
    "LinkWidthEn,LocalPortNum,LinkSpeedEn,LinkSpeedActv,LMC,MKeyProtBits,LinkDownDefState,PortPhyState,PortState"
)
NODE_TYPE = {NodeKind.CA: 1, NodeKind.SWITCH: 2, NodeKind.ROUTER: 3}
WIDTH_CODE = {1: 1, 2: 16, 4: 2, 8: 4, 12: 8}
SPEED_CODE = {2.0: 1, 4.0: 2, 8.0: 4, 13.64: 256, 25.0: 512, 50.0: 1024}
"""Data rate of a lane in Gb/s -> code of the link speed."""


def write_db_csv(fabric: Fabric, sent: dict[tuple[int, int], int] | None = None) -> str:
    """Return the file's text.

    Args:
        sent: (node, port) -> sent 4-byte words, for the section PM_INFO. None to leave the section out.
    """
    ports = {
        (int(node), int(number)): index
        for index, (node, number) in enumerate(zip(fabric.port_node, fabric.port_number, strict=True))
    }
    sections = [section("NODES", NODES, [node_row(fabric, node, ports) for node in range(fabric.nodes)])]
    rows = [port_row(fabric, node, 0, ports, 0, 0) for node, number in ports if number == 0]
    links = []
    for link in range(fabric.links):
        lanes, gbps = int(fabric.link_lanes[link]), float(fabric.link_gbps[link])
        codes = WIDTH_CODE[lanes], SPEED_CODE[round(gbps / lanes, 2)]
        ends = [(int(fabric.link_node[link, end]), int(fabric.link_port[link, end])) for end in (0, 1)]
        rows += [port_row(fabric, node, number, ports, *codes) for node, number in ends]
        links.append(",".join(f"{int(fabric.node_guid[node]):#018x},{number}" for node, number in ends))
    sections += [section("PORTS", PORTS, rows), section("LINKS", "NodeGuid1,PortNum1,NodeGuid2,PortNum2", links)]
    if sent is not None:
        counted = [f"{int(fabric.node_guid[node]):#018x},0x0,{port},0,{words}" for (node, port), words in sent.items()]
        header = "NodeGUID,PortGUID,PortNumber,LinkDownedCounter,PortXmitDataExtended"
        sections.append(section("PM_INFO", header, counted))
    return "\n".join(["# This database file was automatically generated", *sections])


def section(name: str, header: str, rows: list[str]) -> str:
    return "\n".join([f"START_{name}", header, *rows, f"END_{name}", "\n"])


def node_row(fabric: Fabric, node: int, ports: dict[tuple[int, int], int]) -> str:
    kind = NodeKind(fabric.node_kind[node])
    guid = int(fabric.node_guid[node])
    own = next(int(fabric.port_guid[index]) for (of, _), index in ports.items() if of == node)
    return (
        f'"{fabric.node_name[node]}",64,{NODE_TYPE[kind]},1,1,{int(fabric.system_guid[node]):#018x},{guid:#018x},'
        f"{own:#018x},4123,128,0,713,1"
    )


def port_row(fabric: Fabric, node: int, number: int, ports: dict[tuple[int, int], int], width: int, speed: int) -> str:
    index = ports.get((node, number), ports.get((node, 0), -1))
    is_addressed = (node, number) in ports
    lid, lmc = (int(fabric.port_lid[index]), int(fabric.port_lmc[index])) if is_addressed else (0, 0)
    state = 4 if width else 0
    return (
        f"{int(fabric.node_guid[node]):#018x},{int(fabric.port_guid[index]):#018x},{number},0x0000000000000000,"
        f"0xfe80000000000000,1,{lid},2807162954,60,0,{width},19,19,1,3841,{speed},{lmc},0,2,5,{state}"
    )
